#include "apps/report/configuration.hpp"

#include "runtime/core/split.hpp"

#include <utility>

namespace troupe::report {
namespace {

constexpr std::string_view kCommentMark = "  # ";

// Where the comment begins after a value, which may be a quoted text; npos: there is none.
std::size_t comment_at(std::string_view line, std::size_t value) {
  bool quoted = false;
  for (std::size_t i = value; i < line.size(); ++i) {
    if (quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && line.substr(i).starts_with(kCommentMark)) {
      return i;
    }
  }
  return line.npos;
}

}  // namespace

std::vector<ConfigLine> config_lines(std::string_view yaml) {
  std::vector<ConfigLine> out;
  std::vector<std::string> open;  // the sections that enclose the line
  for (const std::string_view line : core::split(yaml, "\n")) {
    const auto begin = line.find_first_not_of(' ');
    const auto colon = begin == line.npos ? line.npos : line.find(':', begin);
    if (colon == line.npos || line[begin] == '#') continue;
    const std::size_t depth = begin / 2;
    if (depth > open.size()) continue;  // without a section: not the form that we write
    open.resize(depth);
    const std::string name(line.substr(begin, colon - begin));
    if (colon + 1 >= line.size()) {
      open.push_back(name);
      continue;
    }
    const std::size_t value = colon + 2;
    const std::size_t comment = value < line.size() ? comment_at(line, value) : line.npos;
    ConfigLine one;
    for (const std::string& section : open)
      one.key += section + ".";
    one.key += name;
    if (value < line.size()) one.value = line.substr(value, comment - value);
    if (comment != line.npos) one.origin = line.substr(comment + kCommentMark.size());
    out.push_back(std::move(one));
  }
  return out;
}

std::string config_value(const std::vector<ConfigLine>& lines, std::string_view key) {
  for (const ConfigLine& line : lines) {
    if (line.key != key) continue;
    const std::string& value = line.value;
    const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
    return quoted ? value.substr(1, value.size() - 2) : value;
  }
  return "";
}

}  // namespace troupe::report
