// Several mistakes of one input told at once: each keeps its own sentence and advice, in the order
// in which it was found. A value type; no thread of its own.
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
  // A message that is there already is not told twice; all after kShown_max are counted.
  void add(Error error);
  void add(ErrorCode code, std::string message) { add(Error{code, std::move(message)}); }
  // Takes the error of a result that has one.
  template <class T>
  void take(const Result<T>& result) {
    if (!result) add(result.error());
  }

  bool empty() const noexcept { return errors_.empty(); }
  // One error with the code of the first and all messages; needs at least one.
  Error error() const;
  // Fails with `error` when there is one.
  Result<void> result() const;

  static constexpr std::size_t kShown_max = 40;

 private:
  std::vector<Error> errors_;
  std::size_t more_ = 0;
};

// The messages that an error of a list was made from; of another error its own.
std::vector<std::string_view> single_messages(std::string_view message);

}  // namespace troupe::core
