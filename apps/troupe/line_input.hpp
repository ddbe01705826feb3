// The lines that somebody types at a terminal, or that come from a file or pipe. While the program
// is at work the terminal shows nothing that is typed, so that it does not get into the output;
// whole lines are taken, and shown, at the next prompts, and what was begun stands behind the next
// one. Owned by a command, one in a process; its thread. The terminal is as before when it goes,
// also when a second Ctrl-C ends the program.
#pragma once

#include <optional>
#include <string>

namespace troupe::app {

class LineInput {
 public:
  LineInput();  // a terminal is quiet from here on
  ~LineInput();
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;

  // Whether there is somebody to talk to.
  bool interactive() const noexcept { return interactive_; }

  // The next line, asked for by `prompt` at a terminal. Nothing at the end of the input and after a
  // signal.
  std::optional<std::string> next(const char* prompt);

 private:
  void be_quiet() const;
  void take_typed();
  std::optional<std::string> typed_line();

  const bool interactive_;
  std::string typed_;   // meanwhile, and not taken
  bool ended_ = false;  // Ctrl-D was among it
};

}  // namespace troupe::app
