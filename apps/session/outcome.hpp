// How a run ended: the first word counts. Set on any thread, waited for on one.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/result.hpp"

#include <future>
#include <mutex>
#include <utility>

namespace troupe::app {

class Outcome {
 public:
  void set(core::Result<void> result) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(set_, true)) promise_.set_value(std::move(result));
  }
  core::Result<void> wait() { return future_.get(); }
  // True once it is set; false after `span`.
  bool wait_for(core::Duration span) const {
    return future_.wait_for(span) == std::future_status::ready;
  }

 private:
  mutable std::mutex mutex_;
  bool set_ = false;
  std::promise<core::Result<void>> promise_;
  std::future<core::Result<void>> future_ = promise_.get_future();
};

}  // namespace troupe::app
