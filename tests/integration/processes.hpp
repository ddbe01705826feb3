// Processes of the program under test, each the leader of a group of its own that ends with the
// test whatever happens, and waits that always end. Used on a test's main thread.
#pragma once

#include "apps/bench/logged_process.hpp"
#include "tests/integration/train_support.hpp"
#include "within.hpp"

#include <sched.h>

#include <chrono>
#include <optional>
#include <thread>

namespace troupe::test {

using Seconds = std::chrono::duration<double>;

inline std::string troupe_program() {
  const char* folder = std::getenv("TROUPE_BUILD_DIR");
  return std::string(folder != nullptr ? folder : "build") + "/troupe";
}

// A program that runs in the background with its output in a file. Killed with its group at the
// end.
class Background {
 public:
  Background() = default;
  // `network`: descriptor of the network namespace to run in, or -1 for the test's own.
  Background(const std::vector<std::string>& words,
             const std::filesystem::path& log,
             int network = -1) {
    auto started =
        bench::LoggedProcess::start(words.front(), {words.begin() + 1, words.end()}, log, network);
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
    if (started) process_ = std::move(*started);
  }

  // The exit status, 128 + signal for one that was killed; nothing when it still runs at the limit.
  std::optional<int> wait(double limit_s) {
    const auto status = process_.wait(limit_s);
    return status ? status : process_.wait(more_under_load(limit_s));
  }
  bool running() { return process_.running(); }
  void signal(int number) { process_.signal(number); }
  void kill() { process_.kill(); }
  bool says(const std::string& part) const { return text().find(part) != std::string::npos; }
  std::string text() const { return process_.output(); }
  pid_t pid() const { return process_.pid(); }
  // One field of /proc/PID/status in MiB ("VmRSS:").
  double memory_mb(const std::string& field) const { return bench::memory_mb(pid(), field); }

 private:
  bench::LoggedProcess process_;
};

struct Ended {
  int status = -1;  // -1: it had to be killed
  std::string text;
};

// `troupe WORDS...` to its end, at most `limit_s`.
inline Ended troupe_ends(std::vector<std::string> words,
                         const std::filesystem::path& log,
                         double limit_s,
                         int network = -1) {
  words.insert(words.begin(), troupe_program());
  Background program(std::move(words), log, network);
  const auto status = program.wait(limit_s);
  return {status.value_or(-1), program.text()};
}

// Starts `troupe WORDS...` with its output in `log`.
inline Background start_troupe(const std::vector<std::string>& words,
                               const std::filesystem::path& log) {
  return Background(std::vector<std::string>{troupe_program()} + words, log);
}

// SIGKILL as soon as the condition holds, unless the program has ended before.
inline void kill_once(Background program, const std::function<bool()>& condition) {
  while (!condition() && program.running())
    ::sched_yield();
  program.kill();
}

}  // namespace troupe::test
