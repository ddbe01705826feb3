// Helpers that build the messages of configuration errors from parts. Pure.
#pragma once

#include "runtime/core/result.hpp"

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::config {

inline void append(std::string& to, std::string_view part) {
  to += part;
}
inline void append(std::string& to, std::integral auto part) {
  to += std::to_string(part);
}

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

// The answer about a key: what is wrong and, if anything, what to do.
struct Saying {
  std::string what, advice;
  bool empty() const noexcept { return what.empty(); }
};

// Between the parts of a message: those behind it are advice.
struct Then {};
inline constexpr Then kThen;

class SayingMaker {
 public:
  void add(Then) { in_advice_ = true; }
  void add(const Saying& part) {
    add(part.what);
    if (part.advice.empty()) return;
    in_advice_ = true;
    said_.advice += part.advice;
  }
  void add(const auto& part) { append(in_advice_ ? said_.advice : said_.what, part); }
  Saying said() && { return std::move(said_); }

 private:
  Saying said_;
  bool in_advice_ = false;
};

template <class... Parts>
Saying said(const Parts&... parts) {
  SayingMaker maker;
  (maker.add(parts), ...);
  return std::move(maker).said();
}
inline Saying saying_of(const core::Error& error) {
  return {std::string(error.what()), std::string(error.advice())};
}

// A constant of our own with its advice behind "; ", as tables write one.
inline Saying written(std::string_view sentence) {
  const auto cut = sentence.rfind(core::Error::kBeforeAdvice);
  if (cut == sentence.npos) return {std::string(sentence), ""};
  return {std::string(sentence.substr(0, cut)),
          std::string(sentence.substr(cut + core::Error::kBeforeAdvice.size()))};
}

template <class... Parts>
core::Failure refuse(const Parts&... parts) {
  const Saying saying = said(parts...);
  return core::fail(core::ErrorCode::kConfig, saying.what, saying.advice);
}

}  // namespace troupe::config
