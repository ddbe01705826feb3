#include "runtime/core/error.hpp"

#include "runtime/core/foreign_text.hpp"

#include <iterator>
#include <utility>

namespace troupe::core {
namespace {

struct Meaning {
  std::string_view name;
  int exit_status;
};

// In the order of ErrorCode.
constexpr Meaning kMeanings[] = {
    {"invalid argument", 2}, {"configuration", 2}, {"resources", 3},     {"data", 4},
    {"peer lost", 5},        {"numeric", 6},       {"interrupted", 130}, {"deadline", 5},
    {"closed", 5},           {"overloaded", 3},    {"unsupported", 2},   {"not found", 2},
    {"internal", 1},         {"no room", 3},
};
static_assert(std::size(kMeanings) == kErrorCodes);

// An unknown code counts as a bug.
const Meaning& meaning_of(ErrorCode code) {
  const auto place = static_cast<std::size_t>(code);
  return kMeanings[place < std::size(kMeanings) ? place
                                                : static_cast<std::size_t>(ErrorCode::kInternal)];
}

}  // namespace

std::string_view error_name(ErrorCode code) noexcept {
  return meaning_of(code).name;
}

int exit_status(ErrorCode code) noexcept {
  return meaning_of(code).exit_status;
}

Error Error::within(std::string_view where) const& {
  const std::string prefix = std::string(where) + ": ";
  Error error = *this;
  error.message.insert(0, prefix);
  if (error.advice_at > 0) error.advice_at += prefix.size();
  for (Error& mistake : error.mistakes)
    mistake = mistake.within(where);
  return error;
}

Error Error::also(std::string_view fact) const& {
  Error error = *this;
  const std::string told = with_fact(what(), fact);
  if (advised()) error.advice_at += told.size() - what().size();
  error.message.replace(0, what().size(), told);
  if (!error.mistakes.empty()) error.mistakes.back() = error.mistakes.back().also(fact);
  return error;
}

Error Error::advising(std::string_view more) const& {
  Error error = *this;
  error.message += kBeforeAdvice;
  if (!advised() && mistakes.empty()) error.advice_at = error.message.size();
  error.message += more;
  if (!error.mistakes.empty()) error.mistakes.back() = error.mistakes.back().advising(more);
  return error;
}

Error advised(ErrorCode code, std::string what, std::string_view advice) {
  Error error{code, std::move(what)};
  if (advice.empty()) return error;
  error.message += Error::kBeforeAdvice;
  error.advice_at = error.message.size();
  error.message += advice;
  return error;
}

}  // namespace troupe::core
