// Decides when a checkpoint is due because of elapsed time: once per period, but less often if
// saving would otherwise take more than a tenth of the time. A plain value; the caller passes the
// time in.
#pragma once

#include "runtime/core/clock.hpp"

#include <algorithm>

namespace troupe::store {

class SavePace {
 public:
  // `period`: time between two checkpoints; 0 = never due.
  SavePace(core::Duration period, core::TimePoint start) : period_(period), last_(start) {}

  bool due(core::TimePoint now) const {
    return period_ > core::Duration::zero() && now - last_ >= std::max(period_, 10 * took_);
  }
  // Records that a checkpoint was saved between `begin` and `end`.
  void saved(core::TimePoint begin, core::TimePoint end) {
    last_ = end;
    took_ = end - begin;
  }

 private:
  core::Duration period_;
  core::TimePoint last_;
  core::Duration took_{};  // by the last save
};

}  // namespace troupe::store
