// The handler touches only lock-free atomics, write(2) and _exit(2).
#include "apps/troupe/stop_signal.hpp"

#include <signal.h>
#include <unistd.h>

namespace troupe::app {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> number{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_stop_signal(int signal_number) {
  if (requested.exchange(true)) {
    constexpr char kText[] = "\ntroupe: stopped at once\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
    ::_exit(130);
  }
  number.store(signal_number);
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

void leave_stop_signal() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& stop_requested() noexcept {
  return requested;
}

int stop_signal_number() noexcept {
  return number.load();
}

void clear_stop_request() noexcept {
  requested.store(false);
  number.store(0);
}

}  // namespace troupe::app
