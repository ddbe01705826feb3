// Text in a value of fixed size, which can travel between processes as bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace troupe::core {

// Longer text is cut.
template <std::size_t kSize>
class FixedText {
 public:
  FixedText() = default;
  explicit FixedText(std::string_view text) {
    text.copy(text_, std::min(text.size(), sizeof text_ - 1));
  }
  FixedText& operator=(std::string_view text) { return *this = FixedText(text); }
  bool empty() const { return text_[0] == 0; }
  // Without an end of its own, as it may come from another process, it ends with the field.
  std::string text() const { return {text_, ::strnlen(text_, sizeof text_ - 1)}; }
  bool operator==(const FixedText& other) const { return text() == other.text(); }

 private:
  char text_[kSize] = {};
};

}  // namespace troupe::core
