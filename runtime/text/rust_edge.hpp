// Helpers to call the Rust library: views of text, an owner of its strings, and its statuses as
// core::Error. Private to runtime/text. Stateless; safe on any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/troupe_text.h"

#include <string>
#include <string_view>

namespace troupe::text {

inline troupe_text_view view_of(std::string_view text) {
  return {text.data(), text.size()};
}

class RustString {
 public:
  RustString() = default;
  RustString(const RustString&) = delete;
  RustString& operator=(const RustString&) = delete;
  ~RustString() { troupe_text_string_free(&string_); }

  troupe_text_string* out() { return &string_; }
  std::string str() const {
    return string_.size == 0 ? std::string() : std::string(string_.data, string_.size);
  }

 private:
  troupe_text_string string_{nullptr, 0};
};

// The error of a failed call, with the message `where: why`.
inline core::Failure rust_failure(troupe_text_status status,
                                  const RustString& why,
                                  std::string_view where) {
  auto code = core::ErrorCode::kData;
  if (status == TROUPE_TEXT_INTERNAL) code = core::ErrorCode::kInternal;
  std::string message(where);
  if (!message.empty()) message += ": ";
  return core::fail(code, message + why.str());
}

}  // namespace troupe::text
