// One step in the form that the model reads: the rows of all slices as a ForwardPlan, and jobs that
// say which sample draws from which head row (a row for which the head computes logits). Rebuilt in
// place for each step, without allocation once the largest step has been seen. Owned by the engine;
// read-only while the team runs.
#pragma once

#include "runtime/engine/scheduler.hpp"
#include "runtime/model/plan.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

// With target -1, sample `sample` draws its next token from head row `logit_row`. Otherwise nothing
// is drawn; the log-prob of the prompt token `target` is wanted, at temperature 1. Jobs are in row
// order; all samples of a group whose prompt has just been computed draw from the same row.
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
  // `table_blocks_max`: how many entries the tables of all running samples can have together.
  StepPlan(std::int32_t sequences_max,
           std::int32_t step_tokens_max,
           std::int64_t table_blocks_max,
           const model::ModelSpec& spec);

  // Builds the plan of the slices for a team of `members`. `spare_block`: a KV block that no sample
  // holds. If it is not -1, a step that only decodes is padded to its bucket with rows that write
  // there and whose draws are ignored.
  void build(std::span<const Slice> slices, int members, std::int32_t spare_block = -1);
  // Copies the plan's lists to `memory`, where the team reads them.
  void place(core::Memory& memory) { plan_.place(memory); }

  const model::ForwardPlan& plan() const { return plan_; }
  // The number of rows, padding included, of a step that only decodes and has a spare block; row i
  // is then head row i and belongs to job i. 0 for other steps.
  std::int64_t bucket() const { return bucket_; }
  std::span<const DrawJob> jobs() const { return jobs_; }
  // The index of the first job of head row `row` or a later one.
  std::size_t first_job(std::int64_t row) const;
  // [head rows] 1 / temperature of each head row.
  const float* inv_temperature() const { return inv_temperature_.data(); }

 private:
  void add(const Slice& slice);
  void fill_up(std::int32_t spare_block);
  void add_scored(const Slice& slice, std::int64_t first_row);
  void add_head_row(std::int64_t row, float inv_temperature);

  const std::int64_t rows_max_;  // largest bucket
  const std::int64_t kv_heads_;
  const std::int64_t shared_;  // query heads per KV head
  const model::LayerWindows windows_;
  model::ForwardPlan plan_;
  std::vector<DrawJob> jobs_;
  std::vector<float> inv_temperature_;
  std::int64_t bucket_ = 0;
};

}  // namespace troupe::engine
