// Runs a function when the block ends, however it ends: by return, by an error, or because the
// coroutine was cancelled.
//
//   changing_ = true;
//   const core::AtExit done([this] { changing_ = false; });
#pragma once

#include <utility>

namespace troupe::core {

template <class Function>
class [[nodiscard]] AtExit {
 public:
  explicit AtExit(Function function) : function_(std::move(function)) {}
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;
  ~AtExit() { function_(); }

 private:
  Function function_;
};

}  // namespace troupe::core
