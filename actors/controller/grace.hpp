// How long the steps of a run take, to decide what still fits into the time that it was given to
// end. A plain value; the caller passes the time in. A step that was never seen is taken to be
// short.
#pragma once

#include "runtime/core/clock.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace troupe::actors::controller {

class Grace {
 public:
  enum class Step : std::size_t { kCollect, kTrain, kEvaluate, kSave };

  // A step begins, and with it the one before it ends.
  void begin(Step step, core::TimePoint now) {
    end(now);
    under_way_ = step;
    since_ = now;
  }
  void end(core::TimePoint now) {
    if (under_way_) took(*under_way_) = now - since_;
    under_way_.reset();
  }
  // Ends the step without learning from it: it was a repetition, which takes no time.
  void skip() { under_way_.reset(); }

  const std::optional<Step>& under_way() const noexcept { return under_way_; }
  std::optional<core::Duration> expected(Step step) const {
    return took_[static_cast<std::size_t>(step)];
  }
  // What is left of the update or the evaluation under way, a checkpoint excepted.
  core::Duration rest(core::TimePoint now) const {
    if (!under_way_ || *under_way_ == Step::kSave) return core::Duration::zero();
    const core::Duration left =
        std::max(expected(*under_way_).value_or(core::Duration::zero()) - (now - since_),
                 core::Duration::zero());
    if (*under_way_ != Step::kCollect) return left;
    return left + expected(Step::kTrain).value_or(core::Duration::zero());
  }

 private:
  std::optional<core::Duration>& took(Step step) { return took_[static_cast<std::size_t>(step)]; }

  std::array<std::optional<core::Duration>, 4> took_;
  std::optional<Step> under_way_;
  core::TimePoint since_{};
};

}  // namespace troupe::actors::controller
