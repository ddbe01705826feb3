// Collects several errors in one input to report them together. Each keeps its own sentence and
// advice, in the order of discovery. A value type; no thread of its own.
#pragma once

#include "runtime/core/error.hpp"
#include "runtime/core/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::core {

class ErrorList {
 public:
  // Ignores a message that is already in the list, and takes several mistakes one by one. Beyond
  // kShown_max, messages are only counted.
  void add(Error error);
  void add(ErrorCode code, std::string what, std::string_view advice = {}) {
    add(advised(code, std::move(what), advice));
  }
  // Adds the error of a failed result.
  template <class T>
  void take(const Result<T>& result) {
    if (!result) add(result.error());
  }

  bool empty() const noexcept { return errors_.empty(); }
  // One error with all mistakes and the code of the first. The list must not be empty.
  Error error() const;
  // Fails with `error()` unless the list is empty.
  Result<void> result() const;

  static constexpr std::size_t kShown_max = 40;

 private:
  std::vector<Error> errors_;
  std::size_t more_ = 0;
};

// The mistakes of an error; an error of one mistake is the only one.
std::vector<Error> single_errors(const Error& error);

}  // namespace troupe::core
