// The program weight_reader as a child: started, spoken to, stopped, killed.
#pragma once

#include "tests/unit/runtime/weights/fixture.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::weights {

class ReaderProcess {
 public:
  // `host`: the id of the host that it believes to be on; empty: this one. `reach`: the address at
  // which others get weights from it, where "@" stands for its port; empty: none.
  ReaderProcess(const std::string& way,
                std::int64_t vocab,
                const WeightLocation& at,
                const std::string& host = "",
                const std::string& reach = "") {
    start({way, std::to_string(vocab), at.host_id, at.socket, at.tcp_host,
           std::to_string(at.tcp_port), at.key, host, reach});
  }
  // A publisher.
  explicit ReaderProcess(std::int64_t vocab) { start({"source", std::to_string(vocab)}); }
  ~ReaderProcess() {
    if (child_ > 0) kill();
    ::close(to_);
    std::fclose(from_);
  }

  void say(const std::string& line) {
    const std::string text = line + "\n";
    TROUPE_CHECK(::write(to_, text.data(), text.size()) == static_cast<ssize_t>(text.size()),
                 "writing to the reader");
  }
  std::string hear() {
    char line[512] = "";
    if (std::fgets(line, sizeof line, from_) == nullptr) return "end";
    std::string text = line;
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  std::string ask(const std::string& line) {
    say(line);
    return hear();
  }
  void stop() {
    ::kill(child_, SIGSTOP);
    int status = 0;
    ::waitpid(child_, &status, WUNTRACED);
    TROUPE_CHECK(WIFSTOPPED(status), "the reader stands still");
  }
  void go_on() { ::kill(child_, SIGCONT); }
  void kill() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  void start(std::vector<std::string> words) {
    words.insert(
        words.begin(),
        (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "weight_reader").string());
    std::vector<char*> pointers;
    for (std::string& word : words)
      pointers.push_back(word.data());
    pointers.push_back(nullptr);
    int in[2], out[2];
    TROUPE_CHECK(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0, "pipes");
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = ::fdopen(out[0], "r");
  }

  pid_t child_ = -1;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

}  // namespace troupe::weights
