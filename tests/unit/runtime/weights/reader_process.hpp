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
    const auto program =
        (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "weight_reader").string();
    const std::string vocabulary = std::to_string(vocab), port = std::to_string(at.tcp_port);
    int in[2], out[2];
    TROUPE_CHECK(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0, "pipes");
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execl(program.c_str(), program.c_str(), way.c_str(), vocabulary.c_str(), at.host_id.c_str(),
              at.socket.c_str(), at.tcp_host.c_str(), port.c_str(), at.key.c_str(), host.c_str(), reach.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = ::fdopen(out[0], "r");
  }
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
  pid_t child_ = -1;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

}  // namespace troupe::weights
