#include "runtime/config/shell_variables.hpp"

#include "runtime/config/refuse.hpp"
#include "runtime/config/shell_sum.hpp"

#include <algorithm>
#include <cctype>

namespace troupe::config {
namespace {

constexpr int kDefaults_max = 8;  // one in another: ${A:-${B:-1}}

bool is_name_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

ShellText unknown_text(std::string part) {
  return {part, part};
}

// The size of a ${...} at the beginning of a text, in which others may stand.
std::size_t braces_size(std::string_view text) {
  int open = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '{') ++open;
    if (text[i] == '}' && --open == 0) return i + 1;
  }
  return text.size();
}

}  // namespace

bool is_shell_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text, is_name_letter);
}

std::string_view shell_name_in(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_name_letter);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

const ShellVariable* ShellVariables::find(std::string_view name) const {
  const auto own = own_.find(name);
  return own == own_.end() ? nullptr : &own->second;
}

ShellText ShellVariables::value(std::string_view name) const {
  if (const ShellVariable* own = find(name))
    return {own->words.empty() ? "" : own->words.front().text, own->unknown};
  if (const auto given = (*environment_)(name)) return {*given, {}};
  return unknown_text(joined("$", name));
}

ShellText ShellVariables::braces(std::string_view inside, int depth) const {
  const std::string_view name = shell_name_in(inside);
  std::string_view rest = inside.substr(name.size());
  const bool named = is_shell_name(name);
  if (rest.empty() && named) return value(name);
  const bool empty_too = rest.starts_with(":-") || rest.starts_with(":=");
  if (name.empty() || (!empty_too && !rest.starts_with("-") && !rest.starts_with("=")))
    return unknown_text(joined("${", inside, "}"));
  // Of ${1:-x} the default counts: a script that is read has no arguments.
  const ShellText own = named ? value(name) : ShellText{"", "$"};
  const bool is_set = named && (find(name) != nullptr || own.unknown.empty());
  if (is_set && !(empty_too && own.text.empty())) return own;
  rest.remove_prefix(empty_too ? 2 : 1);
  return depth < kDefaults_max ? expanded(rest, depth + 1) : unknown_text(std::string(rest));
}

ShellText ShellVariables::expanded(std::string_view text, int depth) const {
  ShellText out;
  while (!text.empty()) {
    ShellText part = {std::string(text.substr(0, 1)), {}};
    std::size_t size = 1;
    if (text.starts_with("${")) {
      size = braces_size(text);
      part = braces(text.substr(2, size < 3 ? 0 : size - 3), depth);
    } else if (text[0] == '$' && !shell_name_in(text.substr(1)).empty()) {
      const std::string_view name = shell_name_in(text.substr(1));
      size = 1 + name.size();
      part = value(name);
    } else if (text[0] == '"' || text[0] == '\'') {
      part.text.clear();
    }
    out.text += part.text;
    if (out.unknown.empty()) out.unknown = part.unknown;
    text.remove_prefix(size);
  }
  return out;
}

ShellText ShellVariables::sum(std::string_view inside) const {
  const auto number = [this](std::string_view name) -> std::optional<std::int64_t> {
    const ShellText own = value(name);
    if (!own.unknown.empty()) return std::nullopt;
    return shell_sum(own.text, [](std::string_view) { return std::nullopt; });
  };
  std::string plain;  // $NAME and ${NAME} are names there, too
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const bool sign = inside[i] == '$' || inside[i] == '{' || inside[i] == '}';
    if (!sign) plain += inside[i];
  }
  const auto found = shell_sum(plain, number);
  return found ? ShellText{std::to_string(*found), {}} : unknown_text(joined("$((", inside, "))"));
}

}  // namespace troupe::config
