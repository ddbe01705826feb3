// Finds where a JSON object or list ends while its text arrives piece by piece. It counts brackets
// outside of strings and checks nothing else; what it has found is then parsed. One thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::dialects {

class JsonEnd {
 public:
  // Takes text up to the end of the value, which begins with its first character. Returns how many
  // bytes it took.
  std::size_t push(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      take(text[i]);
      if (found_) return i + 1;
    }
    return text.size();
  }
  bool found() const { return found_; }

 private:
  void take(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (quoted_) {
      escaped_ = c == '\\';
      quoted_ = c != '"';
    } else if (c == '"') {
      quoted_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      found_ = --depth_ <= 0;
    }
  }

  int depth_ = 0;
  bool quoted_ = false, escaped_ = false, found_ = false;
};

}  // namespace troupe::dialects
