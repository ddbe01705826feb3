// Processes of the program under test, each the leader of a group of its own that ends with the
// test whatever happens, and waits that always end. Used on a test's main thread.
#pragma once

#include "tests/integration/train_support.hpp"
#include "within.hpp"

#include <sched.h>
#include <sys/prctl.h>

#include <chrono>
#include <functional>
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
  Background(std::vector<std::string> words, std::filesystem::path log, int network = -1)
      : log_(std::move(log)) {
    std::vector<char*> argv;
    for (auto& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    std::filesystem::remove(log_);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) become(argv.data(), log_.c_str(), network, parent);
  }
  Background(Background&& other) noexcept { swap(other); }
  Background& operator=(Background&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Background() { kill(); }

  // The exit status, 128 + signal for one that was killed; nothing when it still runs at the limit.
  std::optional<int> wait(double limit_s) {
    within(limit_s, [&] { return !running(); });
    return status_;
  }
  bool running() {
    if (pid_ <= 0 || status_) return false;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return false;
  }
  void signal(int number) {
    if (running()) ::kill(pid_, number);
  }
  void kill() {
    if (pid_ <= 0) return;
    const bool there = running();
    ::kill(-pid_, SIGKILL);  // what is left of the group, too
    if (there) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  bool says(const std::string& part) const { return text().find(part) != std::string::npos; }
  std::string text() const { return text_of(log_); }
  pid_t pid() const { return pid_; }

  // One field of /proc/PID/status in MiB ("VmRSS:").
  double memory_mb(const std::string& field) const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with(field)) return std::stod(line.substr(field.size())) / 1024;
    }
    return 0;
  }

 private:
  [[noreturn]] static void become(char** argv, const char* log, int network, pid_t parent) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    const bool placed = network < 0 || ::setns(network, CLONE_NEWNET) == 0;
    if (placed && ::getppid() == parent) ::execvp(argv[0], argv);
    ::_exit(127);
  }
  void swap(Background& other) noexcept {
    std::swap(log_, other.log_);
    std::swap(pid_, other.pid_);
    std::swap(status_, other.status_);
  }

  std::filesystem::path log_;
  pid_t pid_ = -1;
  std::optional<int> status_;
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

}  // namespace troupe::test
