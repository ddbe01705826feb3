// The batch arithmetic of a run when every sample is as long as it may be: how many samples an
// update has, and how many steps, micro-batches and rounds of lanes. A value type; the
// micro-batches are counted as learn::plan_update cuts them.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>

namespace troupe::plan {

struct BatchFacts {
  bool prompts = true;           // prompts and groups of samples; else rows of a dataset
  std::int64_t groups = 1;       // of an optimiser step: prompts, rows or pairs
  std::int64_t samples = 1;      // of a group; 2 for pairs
  std::int64_t steps = 1;        // optimiser steps of a pass
  std::int64_t passes = 1;       // over an update, or over the dataset
  std::int64_t shared_rows = 0;  // of a group, which its samples share: the prompt
  std::int64_t sample_rows = 1;  // of a sample besides
  std::int64_t rows_max = 1;     // of a micro-batch
  std::int64_t lanes = 1;
  std::int64_t ranks = 1;
};

struct Batch {
  BatchFacts facts;
  std::int64_t rows = 0;           // of a step
  std::int64_t micro_batches = 0;  // of a step; a multiple of the lanes as far as there are samples
  std::int64_t rounds = 0;         // of a step
  std::int64_t lanes_of_rank = 0;  // of the rank that has most
  // Micro-batches that this rank computes in a step.
  std::int64_t of_rank() const { return rounds * lanes_of_rank; }
  std::int64_t samples_of_step() const { return facts.groups * facts.samples; }
};

// Errors kConfig: one sample with its prompt does not fit a micro-batch.
core::Result<Batch> batch_of(const BatchFacts& facts);

}  // namespace troupe::plan
