// The signal handler is async-signal-safe: lock-free atomics, write(2), _exit(2) and a hook that
// must be so, too.
#include "apps/cli/stop_signal.hpp"

#include <signal.h>
#include <unistd.h>

namespace troupe::app {
namespace {

std::atomic<bool> requested{false};
std::atomic<void (*)()> forced_end{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_stop_signal(int) {
  if (requested.exchange(true)) {
    if (void (*const hook)() = forced_end.load()) hook();
    constexpr char kText[] = "\ntroupe: stopped at once\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
    ::_exit(130);
  }
}

}  // namespace

void install_stop_signal() {
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // blocking reads return, so that a waiting prompt ends too
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void before_forced_end(void (*hook)()) noexcept {
  forced_end.store(hook);
}

void leave_stop_signal() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& stop_requested() noexcept {
  return requested;
}

void clear_stop_request() noexcept {
  requested.store(false);
}

}  // namespace troupe::app
