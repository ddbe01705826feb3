// The jobs of a step that a device's sampler draws, in the order in which it computes them: slots,
// by batch of head rows and then by kind. Makes the lists that go to the device. Plain numbers on
// the host; owned by a DeviceSampler. Bound: an entry per job, and one per logit that changes.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/range.hpp"
#include "runtime/engine/logit_changes.hpp"
#include "runtime/engine/step_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::engine {

enum class DrawKind : std::uint8_t { kPlain, kKept, kScored };

struct DrawSlot {
  std::size_t index = 0;  // of the job
  std::int32_t row = 0;   // head row of the step
  DrawKind kind = DrawKind::kPlain;
  bool entropy = false, raw = false;
  std::int32_t top = 0;  // most likely tokens wanted
  std::int32_t top_begin = 0;
  std::int32_t target = 0;  // kScored
  double u = 0;             // below 0: greedy
  kernels::Truncation truncation;
};

// The part of one batch in the lists.
struct DrawBatch {
  std::size_t plain = 0, kept = 0, scored = 0, end = 0;  // slots: where each kind begins
  std::size_t change_begin = 0, change_end = 0;
  std::size_t top_begin = 0, top_end = 0;
  core::Range rows;  // from the first with a slot to the last, counted from the batch's first
  bool entropy = false, raw = false;
};

struct DrawLists {
  std::vector<DrawSlot> slots;
  std::vector<DrawBatch> batches;
  // By slot.
  std::vector<std::int32_t> rows;  // counted from the batch's first
  std::vector<double> uniforms;
  std::vector<kernels::Truncation> truncations;
  std::vector<std::int32_t> tokens;  // of kScored
  // By head row: the penalties, and where the row's slots begin in `targets`.
  std::vector<kernels::Penalties> penalties;
  std::vector<std::int32_t> target_begin, targets;
  std::vector<kernels::LogitChange> changes;  // by row; their rows counted from the batch's first
  std::vector<std::int32_t> top_rows, top_begin;
};

class DrawSlots {
 public:
  // `batch_rows`: the most head rows of a batch.
  DrawSlots(std::int64_t vocab, std::int64_t batch_rows)
      : vocab_(vocab), batch_rows_(batch_rows), changes_of_(vocab) {}

  // `head_rows`: of the whole step.
  void begin(std::int64_t head_rows);
  // Job number `index` of the step; `u` as for Sampler::draw.
  void add(std::size_t index, const DrawJob& job, double u, const DrawHistory& history);
  // Orders what was added and completes the lists.
  void order();
  // Complete after `order`.
  const DrawLists& lists() const { return lists_; }

 private:
  void change(std::int32_t row, const SamplingParams& params, const DrawHistory& history);
  void fill(DrawBatch& batch, DrawSlot& slot);
  void list_targets();
  std::int64_t batch_of(std::int32_t row) const { return row / batch_rows_; }

  const std::int64_t vocab_, batch_rows_;
  LogitChanges changes_of_;
  DrawLists lists_;
  std::int32_t last_changed_ = -1;  // head row
};

}  // namespace troupe::engine
