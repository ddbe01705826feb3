// For the checking sides of `troupe bench exact`: regroups a transcript into parts of groups, packs
// them into micro-batches, and compares log-probs bit by bit. Pure functions on the caller's
// thread.
#pragma once

#include "apps/bench/exact_transcript.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::app {

// Some samples of one group, in the order in which they are packed; the prompt is computed once for
// them.
struct Part {
  const TranscriptGroup* group = nullptr;
  std::vector<std::size_t> samples;
};

using PartBatch = std::vector<Part>;

// Whole groups in the transcript's order.
std::vector<Part> whole_groups(const std::vector<const TranscriptGroup*>& groups);

// Every group cut into parts of random size with its samples in random order, all parts shuffled.
std::vector<Part> shuffled_parts(const std::vector<const TranscriptGroup*>& groups, core::Rng& rng);

// Micro-batches of at most row_limits[i mod size] rows, or one part; all parts have one
// temperature.
std::vector<PartBatch> pack_parts(std::vector<Part> parts,
                                  std::span<const std::int64_t> row_limits);

// The batch as the model's input: spans into the transcript.
std::vector<model::SampleGroup> model_groups(const PartBatch& batch);

struct Difference {
  std::int64_t tokens = 0;            // compared
  std::int64_t differing_tokens = 0;  // with at least one other bit
  std::int64_t differing_bits = 0;    // over all tokens
  double absolute_max = 0;            // of the differences

  void add(const Difference& other);
};

// `logprobs` by part, sample and position, the order of model::GroupPlan::targets.
Difference compare(const PartBatch& batch, std::span<const float> logprobs);

}  // namespace troupe::app
