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
  // Ignores a message that is already in the list. Beyond kShown_max, messages are only counted.
  void add(Error error);
  void add(ErrorCode code, std::string message) { add(Error{code, std::move(message)}); }
  // Adds the error of a failed result.
  template <class T>
  void take(const Result<T>& result) {
    if (!result) add(result.error());
  }

  bool empty() const noexcept { return errors_.empty(); }
  // One error with all messages and the code of the first. The list must not be empty.
  Error error() const;
  // Fails with `error()` unless the list is empty.
  Result<void> result() const;

  static constexpr std::size_t kShown_max = 40;

 private:
  std::vector<Error> errors_;
  std::size_t more_ = 0;
};

// Splits the message of ErrorList::error() into its parts; any other message is one part.
std::vector<std::string_view> single_messages(std::string_view message);

}  // namespace troupe::core
