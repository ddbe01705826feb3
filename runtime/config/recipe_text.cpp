#include "runtime/config/recipe_text.hpp"

#include "runtime/config/refuse.hpp"
#include "runtime/core/split.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

// Without control characters, and without what else ends a line in YAML (NEL, LS, PS).
std::string on_one_line(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](unsigned char c) { return c < ' ' || c == 0x7F; }, '?');
  for (const std::string_view end : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    for (auto at = out.find(end); at != out.npos; at = out.find(end, at))
      out.replace(at, end.size(), "?");
  }
  return out;
}

std::string remark_lines(std::string_view text, const std::string& indent) {
  return joined(indent, "# ", wrapped(on_one_line(text), indent + "# ", RecipeText::kColumns),
                "\n");
}

}  // namespace

std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns) {
  std::string out;
  std::size_t used = indent.size();
  for (const std::string_view word : core::split(text, " ")) {
    if (used > indent.size() && used + 1 + word.size() > columns) {
      out += joined("\n", indent);
      used = indent.size();
    } else if (used > indent.size()) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out;
}

std::string section_lines(std::string& open, std::string_view name) {
  const std::string_view path = name.substr(0, name.rfind('.') + 1);
  std::string out, indent;
  for (std::size_t at = 0; at < path.size(); indent += "  ") {
    const std::size_t end = path.find('.', at) + 1;
    if (std::string_view(open).substr(0, end) != path.substr(0, end))
      out += joined(indent, path.substr(at, end - at - 1), ":\n");
    at = end;
  }
  open = path;
  return out;
}

void RecipeText::comment(std::string_view text) {
  open_.clear();
  text_ += remark_lines(text, "");
}

void RecipeText::blank() {
  text_ += '\n';
}

std::string RecipeText::open_sections(std::string_view name) {
  const auto top = [](std::string_view of) { return of.substr(0, of.find('.') + 1); };
  if (!text_.empty() && top(open_) != top(name) && !text_.ends_with("\n\n")) blank();
  text_ += section_lines(open_, name);
  const auto depth = std::ranges::count(name, '.');
  return std::string(static_cast<std::size_t>(depth) * 2, ' ');
}

void RecipeText::line(std::string_view name,
                      std::string_view value,
                      std::string_view remark,
                      bool set) {
  const std::string indent = open_sections(name);
  const std::string own =
      joined(indent, set ? "" : "# ", name.substr(name.rfind('.') + 1), ": ", value);
  const bool behind = own.size() + 4 + remark.size() <= kColumns;
  if (!remark.empty() && !behind) text_ += remark_lines(remark, indent);
  text_ += own;
  if (!remark.empty() && behind) text_ += joined("  # ", on_one_line(remark));
  text_ += '\n';
}

void RecipeText::key(std::string_view name, std::string_view value, std::string_view remark) {
  line(name, value, remark, true);
}

void RecipeText::unset(std::string_view name, std::string_view value, std::string_view remark) {
  line(name, value, remark, false);
}

}  // namespace troupe::config
