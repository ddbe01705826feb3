// Tells when time alone calls for a checkpoint: every so often, but never so often that saving
// takes more than a tenth of the time. A plain value; the caller passes the time in.
#pragma once

#include "runtime/core/clock.hpp"

#include <algorithm>

namespace troupe::store {

class SavePace {
 public:
  // `period`: between two checkpoints; 0 = never for the sake of time.
  SavePace(core::Duration period, core::TimePoint start) : period_(period), last_(start) {}

  bool due(core::TimePoint now) const {
    return period_ > core::Duration::zero() && now - last_ >= std::max(period_, 10 * took_);
  }
  void saved(core::TimePoint begin, core::TimePoint end) {
    last_ = end;
    took_ = end - begin;
  }

 private:
  core::Duration period_;
  core::TimePoint last_;
  core::Duration took_{};
};

}  // namespace troupe::store
