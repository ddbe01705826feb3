// The positions that a step computes, within its budget of rows: first the newest token of each
// running sample, then, with the rest, chunks of prompts and of samples that are computed again.
// Owned by the scheduler, which says who runs.
#pragma once

#include "runtime/engine/group.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace troupe::engine {

// Consecutive positions of one sample that a step computes: [first, first + count).
struct Slice {
  Group* group = nullptr;
  std::int32_t sample = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  bool draws = false;  // ends at the sample's last position, so its last row draws the next token
};

class StepSlices {
 public:
  // `samples_max` run at most; a step computes at most `rows_max` positions.
  StepSlices(std::int32_t samples_max, std::int32_t rows_max);

  void begin(const ActiveGroups& active);
  // Samples of the active groups that run. If not all that decode fit, they take turns.
  void add_running(const ActiveGroups& active);
  // As many positions of a sample as there is room for.
  void add(Group& group, std::int32_t sample);
  bool full() const { return rest_ <= 0; }
  // In row order.
  std::span<const Slice> slices() const { return slices_; }

 private:
  void add_decoding(const ActiveGroups& active);

  const std::int32_t rows_max_;
  std::int32_t rest_ = 0;  // rows of the budget
  std::vector<Slice> slices_;
  std::vector<std::pair<Group*, std::int32_t>> decode_;  // scratch of add_decoding
  std::size_t decode_turn_ = 0;  // where in `decode_` to start if not all of it fits into a step
};

}  // namespace troupe::engine
