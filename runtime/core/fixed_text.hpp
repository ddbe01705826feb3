// Text in a value of fixed size, which can travel between processes as bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace troupe::core {

// Longer text is cut.
template <std::size_t kSize>
class FixedText {
 public:
  FixedText() = default;
  explicit FixedText(const std::string& text) {
    text.copy(text_, std::min(text.size(), sizeof text_ - 1));
  }
  bool empty() const { return text_[0] == 0; }
  std::string text() const { return text_; }
  bool operator==(const FixedText& other) const { return text() == other.text(); }

 private:
  char text_[kSize] = {};
};

}  // namespace troupe::core
