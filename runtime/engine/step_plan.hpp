// One step in the form that the model reads: the rows of all slices as a ForwardPlan, and beside it
// which samples draw a token from which head row. Rebuilt in place each step, without allocation
// once the largest step has been seen. Owned by the engine; read-only while the team runs.
#pragma once

#include "runtime/engine/scheduler.hpp"
#include "runtime/model/plan.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

// Sample `sample` draws its next token from head row `logit_row`; or, when `target` is a token,
// nothing is drawn and the log-prob of that token is wanted, at temperature 1 (the prompt's token
// at position `position`). Jobs are in row order; the samples of a group whose prompt just ended
// draw from one row.
struct DrawJob {
  Group* group = nullptr;
  std::int32_t sample = 0;
  std::int32_t logit_row = 0;
  std::int32_t target = -1;
  std::int32_t position = 0;  // of the token drawn or scored
};

// The size to which a decode step of `rows` rows is padded: 1, 2, 4, 8, then multiples of 8, at
// most `most`.
constexpr std::int64_t decode_bucket(std::int64_t rows, std::int64_t most) {
  std::int64_t bucket = (rows + 7) / 8 * 8;
  if (rows <= 4) bucket = rows <= 2 ? rows : 4;
  return bucket < most ? bucket : most;
}

class StepPlan {
 public:
  // `table_blocks_max`: blocks that all running samples' tables can have together.
  StepPlan(std::int32_t sequences_max,
           std::int32_t step_tokens_max,
           std::int64_t table_blocks_max,
           const model::ModelSpec& spec);

  // `spare_block`: a KV block that nobody reads. Where there is one, a step that only decodes is
  // filled up to its bucket with rows that write there and draw for nobody. -1: no such rows.
  void build(std::span<const Slice> slices, int members, std::int32_t spare_block = -1);
  // Copies the plan's lists to `memory`, where the team reads them.
  void place(core::Memory& memory) { plan_.place(memory); }

  const model::ForwardPlan& plan() const { return plan_; }
  // The rows of a step that was filled up; 0 for another. Then row, head row and job i go together.
  std::int64_t bucket() const { return bucket_; }
  std::span<const DrawJob> jobs() const { return jobs_; }
  // The first job that draws from head row `row` or one behind it.
  std::size_t first_job(std::int64_t row) const;
  // [logit rows] 1 / temperature of each head row.
  const float* inv_temperature() const { return inv_temperature_.data(); }

 private:
  void add(const Slice& slice);
  void fill_up(std::int32_t spare_block);
  void add_scored(const Slice& slice, std::int64_t first_row);
  void add_head_row(std::int64_t row, float inv_temperature);

  const std::int64_t rows_max_;  // of a bucket
  const std::int64_t kv_heads_;
  const std::int64_t shared_;  // heads of one kv head
  const model::LayerWindows windows_;
  model::ForwardPlan plan_;
  std::vector<DrawJob> jobs_;
  std::vector<float> inv_temperature_;
  std::int64_t bucket_ = 0;
};

}  // namespace troupe::engine
