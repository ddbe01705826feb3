#include "runtime/engine/step_plan.hpp"

#include "runtime/engine/sampler.hpp"

#include <algorithm>

namespace troupe::engine {

StepPlan::StepPlan(std::int32_t sequences_max,
                   std::int32_t step_tokens_max,
                   std::int64_t table_blocks_max,
                   const model::ModelSpec& spec)
    : rows_max_(std::min(sequences_max, step_tokens_max)),
      kv_heads_(spec.kv_heads),
      shared_(spec.heads / spec.kv_heads),
      windows_(spec.layer_windows()) {
  const auto rows = static_cast<std::size_t>(step_tokens_max);
  const auto samples = static_cast<std::size_t>(sequences_max);
  plan_.tokens.reserve(rows);
  plan_.positions.reserve(rows);
  plan_.slots.reserve(rows);
  plan_.slot_begin.reserve(rows + 1);
  plan_.segments.reserve(samples);
  plan_.items.reserve((rows + samples) * static_cast<std::size_t>(kv_heads_));
  plan_.block_table.reserve(static_cast<std::size_t>(table_blocks_max));
  plan_.logit_rows.reserve(samples);
  jobs_.reserve(samples);
  inv_temperature_.reserve(samples);
}

namespace {

// True if the slice is one row that draws one token for one sample.
bool decodes(const Slice& slice) {
  return slice.count == 1 && slice.draws && slice.group->forked;
}

}  // namespace

void StepPlan::build(std::span<const Slice> slices, int members, std::int32_t spare_block) {
  plan_.clear();
  bucket_ = 0;
  jobs_.clear();
  inv_temperature_.clear();
  plan_.slot_begin.push_back(0);
  for (const Slice& slice : slices)
    add(slice);
  if (spare_block >= 0 && std::all_of(slices.begin(), slices.end(), decodes)) fill_up(spare_block);
  plan_.finish(kv_heads_, members, shared_, windows_);
}

void StepPlan::add(const Slice& slice) {
  Group& group = *slice.group;
  const SampleState& sample = group.at(slice.sample);
  const std::int32_t end = slice.first + slice.count;
  plan_.segments.push_back({static_cast<std::int32_t>(plan_.rows()), slice.count, slice.first,
                            static_cast<std::int32_t>(plan_.block_table.size())});
  plan_.block_table.insert(plan_.block_table.end(), sample.blocks.begin(),
                           sample.blocks.begin() + blocks_for(end));
  for (std::int32_t position = slice.first; position < end; ++position) {
    plan_.tokens.push_back(group.token_at(sample, position));
    plan_.positions.push_back(position);
    const std::int32_t block = sample.blocks[static_cast<std::size_t>(position / kBlockTokens)];
    plan_.slots.push_back(block * kBlockTokens + position % kBlockTokens);
    plan_.slot_begin.push_back(static_cast<std::int32_t>(plan_.slots.size()));
  }
  if (group.scores_prompt()) add_scored(slice, plan_.rows() - slice.count);
  if (!slice.draws) return;
  add_head_row(plan_.rows() - 1, engine::inv_temperature(group.request.sampling));
  const auto logit_row = static_cast<std::int32_t>(plan_.logit_rows.size()) - 1;
  const std::int32_t first = group.forked ? slice.sample : 0;
  const std::int32_t last = group.forked ? slice.sample : group.request.samples - 1;
  for (std::int32_t i = first; i <= last; ++i)
    jobs_.push_back({&group, i, logit_row, -1, end});
}

std::size_t StepPlan::first_job(std::int64_t row) const {
  const auto before = [](const DrawJob& job, std::int64_t wanted) {
    return job.logit_row < wanted;
  };
  const auto at = std::lower_bound(jobs_.begin(), jobs_.end(), row, before);
  return static_cast<std::size_t>(at - jobs_.begin());
}

// Pads the step to its bucket with rows for token 0 at position 0 of the spare block. All these
// rows write the same keys and values there, and attend only to them.
void StepPlan::fill_up(std::int32_t spare_block) {
  bucket_ = decode_bucket(plan_.rows(), rows_max_);
  while (plan_.rows() < bucket_) {
    plan_.segments.push_back({static_cast<std::int32_t>(plan_.rows()), 1, 0,
                              static_cast<std::int32_t>(plan_.block_table.size())});
    plan_.block_table.push_back(spare_block);
    plan_.tokens.push_back(0);
    plan_.positions.push_back(0);
    plan_.slots.push_back(spare_block * kBlockTokens);
    plan_.slot_begin.push_back(static_cast<std::int32_t>(plan_.slots.size()));
    add_head_row(plan_.rows() - 1, 1.0f);
  }
}

// Adds score jobs for those rows of the slice whose next token belongs to the prompt.
void StepPlan::add_scored(const Slice& slice, std::int64_t first_row) {
  const std::int32_t prompt = slice.group->prompt_size();
  for (std::int32_t i = 0; i < slice.count; ++i) {
    const std::int32_t next = slice.first + i + 1;
    if (next >= prompt) return;
    add_head_row(first_row + i, 1.0f);
    const auto logit_row = static_cast<std::int32_t>(plan_.logit_rows.size()) - 1;
    jobs_.push_back({slice.group, slice.sample, logit_row,
                     slice.group->request.prompt[static_cast<std::size_t>(next)], next});
  }
}

void StepPlan::add_head_row(std::int64_t row, float inv_temperature) {
  plan_.logit_rows.push_back(static_cast<std::int32_t>(row));
  inv_temperature_.push_back(inv_temperature);
}

}  // namespace troupe::engine
