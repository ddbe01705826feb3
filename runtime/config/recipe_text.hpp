// Writes a configuration for people: YAML sections with remarks. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::config {

class RecipeText {
 public:
  static constexpr std::size_t kColumns = 100;

  // A remark of its own, wrapped, outside of all sections. Control characters become '?'.
  void comment(std::string_view text);
  void blank();
  // A key in its sections, "actor.adam.lr"; keys of one section follow each other. `value` is YAML.
  // The remark stands behind it, or above it where the line would be too long.
  void key(std::string_view name, std::string_view value, std::string_view remark = {});
  // The same as a comment, for a key that could be set.
  void unset(std::string_view name, std::string_view value, std::string_view remark = {});

  const std::string& text() const { return text_; }

 private:
  // Opens the sections of a key; returns its indent.
  std::string open_sections(std::string_view name);
  void line(std::string_view name, std::string_view value, std::string_view remark, bool set);

  std::string text_;
  std::string open_;  // the sections of the last key, "actor.adam."
};

// The lines "actor:" and "  adam:" that a key needs where the sections `open` are open, which
// become those of the key.
std::string section_lines(std::string& open, std::string_view name);

// Wraps `text` at blanks; lines after the first begin with `indent`, and the first stands at its
// width.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t columns);

}  // namespace troupe::config
