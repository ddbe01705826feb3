// The variables of a shell script that is read and not run. Owned by its reader; one thread.
#pragma once

#include "runtime/config/shell_script.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::config {

// What a dollar stands for. `unknown`: as in ShellWord.
struct ShellText {
  std::string text;
  std::string unknown;
};

struct ShellVariable {
  std::vector<ShellWord> words;  // one, or the items of an array
  std::string unknown;           // what in it only a shell knows
};

class ShellVariables {
 public:
  // `environment` outlives this object.
  explicit ShellVariables(const Environment& environment) : environment_(&environment) {}

  void set(const std::string& name, ShellVariable variable) { own_[name] = std::move(variable); }
  // Those that the script has set; null for others.
  const ShellVariable* find(std::string_view name) const;

  // $NAME.
  ShellText value(std::string_view name) const;
  // What stands between ${ and }: NAME, NAME:-DEFAULT, NAME-DEFAULT.
  ShellText braces(std::string_view inside) const { return braces(inside, 0); }
  // What stands between $(( and )).
  ShellText sum(std::string_view inside) const;

 private:
  ShellText braces(std::string_view inside, int depth) const;
  ShellText expanded(std::string_view text, int depth) const;

  const Environment* environment_;
  std::map<std::string, ShellVariable, std::less<>> own_;
};

bool is_shell_name(std::string_view text);
// The letters of a name at the beginning of a text.
std::string_view shell_name_in(std::string_view text);

}  // namespace troupe::config
