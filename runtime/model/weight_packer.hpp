// Fills PackedWeights between the steps of an engine: `advance` packs for about a budget of time
// with all members of the team and goes on where it stopped. The bits are those of
// PackedWeights::fill. Used by one thread; the flat buffer and the panels must outlive it. A slice
// may exceed its budget by one unit (at most 128 KiB of weights, or one panel where rows are
// longer).
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"

#include <atomic>
#include <cstdint>

namespace troupe::model {

class WeightPacker {
 public:
  // `flat`: the weights in the order of ParamLayout, out.flat_size() elements, on the host or, with
  // `here`, in the memory of `out`.
  WeightPacker(PackedWeights& out, const float* flat, core::Version version, bool here = false);
  WeightPacker(const WeightPacker&) = delete;
  WeightPacker& operator=(const WeightPacker&) = delete;

  // True when the panels are whole and carry the version.
  bool advance(core::TeamRunner& team, core::Duration budget);
  bool done() const { return done_; }

 private:
  PackedWeights& out_;
  const float* const flat_;
  const core::Version version_;
  const bool here_;
  std::atomic<std::int64_t> next_{0};  // the first unit that nobody took
  bool done_ = false;
};

}  // namespace troupe::model
