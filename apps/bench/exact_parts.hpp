// Helps the scorer and the trainer to check a transcript in `troupe bench exact`: cuts its groups
// into parts, packs the parts into micro-batches, and compares log-probs bit by bit. Pure
// functions on the caller's thread.
#pragma once

#include "apps/bench/exact_transcript.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::bench {

// Some samples of one group, in the order in which they are packed. The forward pass computes their
// prompt once.
struct Part {
  const TranscriptGroup* group = nullptr;
  std::vector<std::size_t> samples;  // indices into group->samples
};

using PartBatch = std::vector<Part>;

// One part for each group, with all its samples in order.
std::vector<Part> whole_groups(const std::vector<const TranscriptGroup*>& groups);

// Cuts every group into parts of random size, with its samples in random order; shuffles all parts.
std::vector<Part> shuffled_parts(const std::vector<const TranscriptGroup*>& groups, core::Rng& rng);

// Packs the parts, in order, into micro-batches. Number i has at most row_limits[i % size] rows, or
// one part that is larger. The caller passes parts of one temperature.
std::vector<PartBatch> pack_parts(std::vector<Part> parts,
                                  std::span<const std::int64_t> row_limits);

// The batch as input of the model; its spans point into the transcript.
std::vector<model::SampleGroup> model_groups(const PartBatch& batch);

struct Difference {
  std::int64_t tokens = 0;            // whose log-probs were compared
  std::int64_t differing_tokens = 0;  // those whose log-probs differ in any bit
  std::int64_t differing_bits = 0;    // over all tokens
  double absolute_max = 0;            // largest difference between two log-probs

  void add(const Difference& other);
};

// Compares `logprobs` with those of the transcript. They are in the order of
// model::GroupPlan::targets: by part, sample and position.
Difference compare(const PartBatch& batch, std::span<const float> logprobs);

}  // namespace troupe::bench
