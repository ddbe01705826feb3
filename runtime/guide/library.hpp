// Finds and opens libtroupe_guide.so: the file that TROUPE_GUIDE_LIBRARY names, else that next to
// the program or in its ../lib. The program itself needs no llguidance. Thread-safe; the
// library stays open.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/guide/troupe_guide.h"

#include <string>
#include <string_view>

namespace troupe::guide {

// The command that builds the library, for errors.
inline constexpr const char* kGuideBuild = "./dev build guide";

// Error kUnsupported: what is missing, and the command that builds it.
core::Result<const troupe_guide_table*> library();

inline troupe_guide_view view_of(std::string_view text) {
  return {text.data(), text.size()};
}

// Owns a text of the library.
class GuideText {
 public:
  explicit GuideText(const troupe_guide_table& table) : table_(table) {}
  GuideText(const GuideText&) = delete;
  GuideText& operator=(const GuideText&) = delete;
  ~GuideText() { table_.string_free(&text_); }

  troupe_guide_string* out() { return &text_; }
  std::string str() const {
    return text_.size == 0 ? std::string() : std::string(text_.data, text_.size);
  }

 private:
  const troupe_guide_table& table_;
  troupe_guide_string text_{nullptr, 0};
};

}  // namespace troupe::guide
