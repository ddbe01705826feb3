// How far the groups are that a run waits for: the data role counts, whoever watches the run shows.
// A plain value.
#pragma once

#include <cstdint>

namespace troupe::actors {

struct GroupCounts {
  std::uint64_t groups = 0;   // of the update, or of the evaluation
  std::uint64_t sampled = 0;  // came from a generator
  std::uint64_t scored = 0;   // of those, have all their scores; a group that failed counts too
};

}  // namespace troupe::actors
