// Fills PackedWeights in slices between the steps of an engine. Each call of `advance` packs with
// all members of the team for about the given time, and continues where the last call stopped. The
// bits are those of PackedWeights::fill. Used by one thread; the flat buffer and the panels must
// outlive it. On the host a slice may exceed its budget by one unit per member (at most 128 KiB of
// weights, or one panel if that is larger); on a device by 512 units.
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

  // Packs for about `budget`. True when all panels are filled and the version is set.
  bool advance(core::TeamRunner& team, core::Duration budget);
  bool done() const { return done_; }

 private:
  PackedWeights& out_;
  const float* const flat_;
  const core::Version version_;
  const bool here_;
  std::atomic<std::int64_t> next_{0};  // the first unit that no member has taken
  bool done_ = false;
};

}  // namespace troupe::model
