// Recordings of a device's work, by the size of the step. A recording depends on the size and on
// the addresses that it uses, not on what lies there. If an address changes, the work is recorded
// again. Pushes of weights fill two sets of panels in turn (weights/shadow_pool.hpp), so each size
// keeps the recordings for its last two sets of addresses: after the first pushes nothing is
// recorded any more. Used on the engine's thread. Bound: two recordings per size.
#pragma once

#include "runtime/core/team.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace troupe::engine {

class StepRecordings {
 public:
  using Places = std::array<const void*, 26>;  // the addresses that a recording uses

  // Submits the step from a recording; false if it must be run instead. The first step of a size
  // with these addresses is run, so that the CUDA driver loads its kernels; the second one is
  // recorded.
  bool submit(std::int64_t size,
              const Places& now,
              core::TeamRunner& team,
              const std::function<void(core::Team)>& work);
  // Drops all recordings, before the memory that they point to is freed.
  void forget() { recorded_.clear(); }
  // How many steps were submitted.
  std::uint64_t submitted() const { return submitted_; }

 private:
  struct Recorded {
    Places places{};
    std::unique_ptr<core::Recording> work;  // null until a second step has the same places
  };
  struct Size {
    Recorded latest, before;
  };

  std::map<std::int64_t, Size> recorded_;
  std::uint64_t submitted_ = 0;
  bool records_ = true;  // false once the team reports that it cannot record
};

}  // namespace troupe::engine
