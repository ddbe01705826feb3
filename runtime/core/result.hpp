// A value or an Error: the return type of everything that can fail for reasons outside the program.
// The interface follows std::expected, which C++20 does not have. A value type.
#pragma once

#include "runtime/core/check.hpp"
#include "runtime/core/error.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe::core {

// What `fail` returns; converts to any Result.
struct Failure {
  Error error;
};

inline Failure fail(ErrorCode code, std::string message) {
  return Failure{Error{code, std::move(message)}};
}
// With advice, which says what to do and is shown on a line of its own.
inline Failure fail(ErrorCode code, std::string what, std::string_view advice) {
  return Failure{advised(code, std::move(what), advice)};
}
inline Failure fail(Error error) {
  return Failure{std::move(error)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & {
    TROUPE_CHECK(has_value(), "value() of a failed Result");
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    TROUPE_CHECK(has_value(), "value() of a failed Result");
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    TROUPE_CHECK(has_value(), "value() of a failed Result");
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    TROUPE_CHECK(!has_value(), "error() of a successful Result");
    return *std::get_if<1>(&state_);
  }
  Failure failure() const& { return Failure{error()}; }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Failure failure) : error_(std::move(failure.error)) {}

  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const { TROUPE_CHECK(has_value(), "value() of a failed Result"); }

  const Error& error() const& {
    TROUPE_CHECK(!has_value(), "error() of a successful Result");
    return *error_;
  }
  Failure failure() const& { return Failure{error()}; }

 private:
  std::optional<Error> error_;
};

}  // namespace troupe::core

// Every room says these without the namespace.
namespace troupe {
using core::ErrorCode;
using core::fail;
using core::Result;
}  // namespace troupe

// Building blocks of the macros below; `leave` is return or co_return.
#define TROUPE_LEAVE_OR(leave, expr)               \
  do {                                             \
    if (auto troupe_try_ = (expr); !troupe_try_) { \
      leave troupe_try_.failure();                 \
    }                                              \
  } while (false)
#define TROUPE_LEAVE_OR_ASSIGN(leave, var, expr)     \
  auto var##_result_ = (expr);                       \
  if (!var##_result_) leave var##_result_.failure(); \
  auto var = std::move(var##_result_).value()
#define TROUPE_LEAVE_OR_SET(leave, place, expr)    \
  do {                                             \
    auto troupe_try_ = (expr);                     \
    if (!troupe_try_) leave troupe_try_.failure(); \
    place = std::move(troupe_try_).value();        \
  } while (false)

// Returns the error of `expr` from the function, if it failed. For Result<void> or ignored values.
#define TROUPE_TRY(expr) TROUPE_LEAVE_OR(return, expr)
// Declares `var` with the value of `expr`, or returns its error.
#define TROUPE_TRY_ASSIGN(var, expr) TROUPE_LEAVE_OR_ASSIGN(return, var, expr)
// Assigns the value of `expr` to the existing `place`, or returns its error.
#define TROUPE_TRY_SET(place, expr) TROUPE_LEAVE_OR_SET(return, place, expr)

// The three macros for a coroutine.
#define TROUPE_CO_TRY(expr) TROUPE_LEAVE_OR(co_return, expr)
#define TROUPE_CO_TRY_ASSIGN(var, expr) TROUPE_LEAVE_OR_ASSIGN(co_return, var, expr)
#define TROUPE_CO_TRY_SET(place, expr) TROUPE_LEAVE_OR_SET(co_return, place, expr)
