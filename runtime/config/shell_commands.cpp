#include "runtime/config/shell_commands.hpp"

#include "runtime/config/refuse.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::config {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// The name in NAME=VALUE; empty if a word is none.
std::string assigned_name(const ShellWord& word) {
  const auto equals = word.text.find('=');
  if (equals == std::string::npos) return {};
  std::string name = word.text.substr(0, equals);
  return is_shell_name(name) ? name : std::string();
}

}  // namespace

void ShellCommands::add(ShellWord word, bool quoted) {
  if (array_line_ > 0) {
    if (items_.unknown.empty()) items_.unknown = word.unknown;
    items_.words.push_back(std::move(word));
    return;
  }
  if (!quoted && command_.empty() && is_block_word(word.text)) return;
  command_.push_back(std::move(word));
}

// Words of `if` and loops, behind which a command begins.
bool ShellCommands::is_block_word(const std::string& word) {
  if (is_one_of(word, {"if", "for", "while", "until", "case"})) return ++depth_, true;
  if (is_one_of(word, {"fi", "done", "esac"})) return depth_ = std::max(depth_ - 1, 0), true;
  return is_one_of(word, {"then", "else", "elif", "do", "!", "{", "}"});
}

void ShellCommands::end_command() {
  if (array_line_ > 0) return;
  ShellCommand command = std::exchange(command_, {});
  const auto sets = [](const ShellWord& word) { return !assigned_name(word).empty(); };
  auto first = command.begin();
  while (first != command.end() && is_one_of(first->text, {"export", "local", "readonly"}))
    ++first;
  const auto end = std::find_if_not(first, command.end(), sets);
  if (end != command.end()) {
    // A variable in front of a command is for that command alone.
    commands_.emplace_back(std::make_move_iterator(end), std::make_move_iterator(command.end()));
    return;
  }
  for (; first != end; ++first) {
    const std::string name = assigned_name(*first);
    std::string unknown = first->unknown;
    first->text.erase(0, name.size() + 1);
    keep(name, {{*first}, std::move(unknown)});
  }
}

void ShellCommands::take(std::vector<ShellCommand> others) {
  std::ranges::move(others, std::back_inserter(commands_));
}

bool ShellCommands::begins_array(const ShellWord& word, bool quoted) const {
  const std::string& text = word.text;
  return !quoted && command_.empty() && array_line_ == 0 && text.ends_with('=') &&
         is_shell_name(std::string_view(text).substr(0, text.size() - 1));
}

void ShellCommands::begin_array(const ShellWord& word) {
  array_ = word.text.substr(0, word.text.size() - 1);
  array_line_ = word.line;
}

void ShellCommands::end_array() {
  array_line_ = 0;
  keep(array_, std::exchange(items_, {}));
}

void ShellCommands::keep(const std::string& name, ShellVariable variable) {
  if (depth_ > 0 && variable.unknown.empty())
    variable.unknown = joined("$", name, ", which is set under a condition");
  variables_.set(name, std::move(variable));
}

}  // namespace troupe::config
