// Ranks as processes of their own, forked by a test: started, heard, frozen, killed. Each runs a
// function and says lines.
#pragma once

#include "runtime/collective/collectives.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/rng.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::collective::test {

inline constexpr char kKey[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

// A rank's way to speak with the test.
class Line {
 public:
  Line(int from, int to) : from_(::fdopen(from, "r")), to_(to) {}
  void say(const std::string& text) const {
    const std::string line = text + "\n";
    TROUPE_CHECK(::write(to_, line.data(), line.size()) == static_cast<ssize_t>(line.size()),
                 "saying a line");
  }
  std::string hear() const {
    char line[4096] = "";
    if (std::fgets(line, sizeof line, from_) == nullptr) return "end";
    line[std::strcspn(line, "\n")] = 0;
    return line;
  }

 private:
  std::FILE* from_;
  int to_;
};

class Process {
 public:
  explicit Process(const std::function<void(const Line&)>& body) {
    int in[2], out[2];
    TROUPE_CHECK(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0, "pipes");
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(in[1]);
      ::close(out[0]);
      body(Line(in[0], out[1]));
      ::_exit(0);
    }
    ::close(in[0]);
    ::close(out[1]);
    line_ = std::make_unique<Line>(out[0], in[1]);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { kill(); }

  const Line& line() const { return *line_; }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  // Waits until the process has stopped itself, or stops it.
  void wait_until_stopped() const {
    int status = 0;
    ::waitpid(child_, &status, WUNTRACED);
    TROUPE_CHECK(WIFSTOPPED(status), "the process stands still");
  }
  // Waits until the process sleeps, for want of bytes or of room.
  void wait_until_asleep() const {
    for (std::string state; state != "S";) {
      std::ifstream in("/proc/" + std::to_string(child_) + "/stat");
      for (int field = 0; field < 3; ++field)
        in >> state;
    }
  }
  void freeze() const {
    ::kill(child_, SIGSTOP);
    wait_until_stopped();
  }
  void go_on() const { ::kill(child_, SIGCONT); }

 private:
  pid_t child_ = -1;
  std::unique_ptr<Line> line_;
};

// How ranks are connected. kMixed: even ranks are on one host and odd ones on another.
enum class Ways { kWindow, kStream, kMixed };

inline RankOptions options_of(int rank, int size, Ways ways, std::uint64_t window = 4096) {
  RankOptions options;
  options.gang = {core::RunId{7}, "policy", 2};
  options.rank = rank;
  options.size = size;
  options.window_bytes = window;
  options.tcp_host = ways == Ways::kWindow ? "" : "127.0.0.1";
  if (ways == Ways::kStream) options.host_id = "host-" + std::to_string(rank);
  if (ways == Ways::kMixed) options.host_id = "host-" + std::to_string(rank % 2);
  return options;
}

inline std::string words_of(const core::Error& error) {
  return std::string(core::error_name(error.code)) + ": " + error.message;
}

// The lines that the gang of this process logged.
inline std::vector<std::string> g_logged;

// The ranks of a gang, each of which connects and then runs `body`, whose error it says.
class Gang {
 public:
  using Body = std::function<core::Result<void>(Collectives&, const Line&)>;
  Gang(int size, Ways ways, const Body& body, std::uint64_t window = 4096) {
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<Process>([&](const Line& line) {
        RankOptions options = options_of(rank, size, ways, window);
        options.log = [](const std::string& text) { g_logged.push_back(text); };
        Collectives ranks(std::move(options));
        FolderRendezvous rendezvous(folder_.path());
        const auto connected = ranks.connect(rendezvous);
        if (!connected) return line.say(words_of(connected.error()));
        const auto done = body(ranks, line);
        line.say(done ? "well" : words_of(done.error()));
      }));
    }
  }
  Process& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  int size() const { return static_cast<int>(ranks_.size()); }
  std::string hear(int number) { return rank(number).line().hear(); }

 private:
  troupe::test::TempFolder folder_;
  std::vector<std::unique_ptr<Process>> ranks_;
};

// Like a device's memory, for which bytes are staged. At the copy number `trap` it raises a signal.
class StagedMemory final : public core::Memory {
 public:
  explicit StagedMemory(int trap = -1, int signal = 0) : trap_(trap), signal_(signal) {}
  void* allocate(std::size_t bytes) override { return core::host_memory().allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override {
    core::host_memory().release(memory, bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (trap_-- == 0) ::raise(signal_);
    core::host_memory().copy(to, from, bytes);
  }
  bool on_host() const noexcept override { return false; }

 private:
  int trap_;
  const int signal_;
};

// The bytes that rank `from` has for rank `to` in operation `number`.
inline std::vector<char> bytes_of(
    std::uint64_t seed, std::uint64_t number, int from, int to, std::size_t size) {
  std::vector<char> bytes(size);
  std::uint64_t word = core::derive_seed(seed, number, static_cast<std::uint64_t>(from),
                                         static_cast<std::uint64_t>(to));
  for (char& byte : bytes) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(word >> 56);
  }
  return bytes;
}

}  // namespace troupe::collective::test
