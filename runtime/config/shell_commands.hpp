// Puts the words of a shell script together to commands, and sets variables on the way. Owned by
// the script's reader; one thread.
#pragma once

#include "runtime/config/shell_variables.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::config {

class ShellCommands {
 public:
  // `variables`: those that are set before the first command.
  explicit ShellCommands(ShellVariables variables) : variables_(std::move(variables)) {}

  const ShellVariables& variables() const { return variables_; }

  // `quoted`: a part of the word stood in quotes, so it is no word of the shell's own.
  void add(ShellWord word, bool quoted);
  // The end of a line or a ; & | ( ).
  void end_command();
  // Commands of a text within the script.
  void take(std::vector<ShellCommand> others);

  // Whether a ( behind `word` begins an array: NAME=( at the beginning of a command.
  bool begins_array(const ShellWord& word, bool quoted) const;
  void begin_array(const ShellWord& word);
  void end_array();
  // The line in which an array began that is not ended yet; 0: none.
  int open_array() const { return array_line_; }

  std::vector<ShellCommand> done() && { return std::move(commands_); }

 private:
  bool is_block_word(const std::string& word);
  void keep(const std::string& name, ShellVariable variable);

  ShellVariables variables_;
  std::vector<ShellCommand> commands_;
  ShellCommand command_;
  int depth_ = 0;  // of if and loops
  std::string array_;
  int array_line_ = 0;
  ShellVariable items_;
};

}  // namespace troupe::config
