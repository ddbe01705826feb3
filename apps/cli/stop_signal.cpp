// The signal handler is async-signal-safe: lock-free atomics, write(2), _exit(2) and a hook that
// must be so, too.
#include "apps/cli/stop_signal.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace troupe::cli {
namespace {

std::atomic<bool> requested{false};
std::atomic<void (*)()> forced_end{nullptr};
std::atomic<unsigned> limit_s{0};          // of SIGTERM; 0: none
std::atomic<core::Duration::rep> ends{0};  // when that is, on the steady clock; 0: never
std::array<char, 512> words_at_end{};      // written before limit_s is set
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<core::Duration::rep>::is_always_lock_free);

[[noreturn]] void end_with(const char* words) {
  if (void (*const hook)() = forced_end.load()) hook();
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words, std::strlen(words));
  ::_exit(130);
}

extern "C" void on_stop_signal(int number) {
  if (requested.exchange(true)) end_with("\ntroupe: stopped at once\n");
  const unsigned seconds = limit_s.load();
  if (number != SIGTERM || seconds == 0) return;
  ::alarm(seconds);
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // what std::chrono::steady_clock reads
  ends = (core::Duration(std::chrono::seconds(now.tv_sec + seconds)) + core::Duration(now.tv_nsec))
             .count();
}

extern "C" void on_alarm(int) {
  end_with(words_at_end.data());
}

}  // namespace

void install_stop_signal() {
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  ::sigemptyset(&action.sa_mask);
  // Else stdio would lose what it is writing. A prompt waits in poll, which returns all the same.
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error of the write
}

void before_forced_end(void (*hook)()) noexcept {
  forced_end.store(hook);
}

void leave_stop_signal() {
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

void limit_stop(unsigned seconds, const std::string& last_words) {
  const std::string line = "\ntroupe: " + last_words + "\n";
  limit_s = 0;
  words_at_end.fill(0);
  line.copy(words_at_end.data(), words_at_end.size() - 1);
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  limit_s = seconds;
}

std::optional<core::TimePoint> stop_deadline() noexcept {
  const core::Duration::rep at = ends.load();
  if (at == 0) return std::nullopt;
  return core::TimePoint(core::Duration(at));
}

void end_at_once(const std::string& words) {
  const std::string line = words + "\n";
  end_with(line.c_str());
}

const std::atomic<bool>& stop_requested() noexcept {
  return requested;
}

void clear_stop_request() noexcept {
  requested.store(false);
}

}  // namespace troupe::cli
