// What the rows of a micro-batch, or of a step of an engine, take while a model computes them.
// Counts the buffers of model::TrainTape, model::ScoreScratch and model::ForwardScratch in floats;
// a test compares the counts with those objects. Pure functions; formulas: docs/scale.md.
#pragma once

#include "runtime/plan/model_sizes.hpp"

#include <cstdint>

namespace troupe::plan {

// How a team allocates. On the host untouched memory costs nothing. On a device a buffer
// that had to grow has a quarter more than was asked for (core::Buffer::reserve_discard).
struct Place {
  bool on_host = true;
  std::int64_t members = 1;  // threads of the team; 1 on a device

  std::int64_t grown(std::int64_t bytes) const { return on_host ? bytes : bytes + bytes / 4; }
};

// Floats of a pass with gradients over `rows` rows, each of which has a target.
struct TrainRows {
  const ModelSizes& model;
  std::int64_t rows = 0;
  std::int64_t trained_layers = 0;  // those that have a backward pass
  bool checkpointing = false;
  std::int64_t kept() const;             // for the backward pass
  std::int64_t scratch() const;          // of all layers in turn, and of the head except its logits
  std::int64_t members_scratch() const;  // of each member of the team
  // The logits that are kept; 0 for a model without a language head.
  std::int64_t logits(const Place& place) const;
};

// Floats of a pass without gradients: of scorers, and of an engine without its keys and values.
struct ForwardRows {
  const ModelSizes& model;
  std::int64_t rows = 0;
  std::int64_t scratch() const;
  std::int64_t keys() const;    // of one layer; scorers need no others
  std::int64_t logits() const;  // for the one chunk that scorers keep; 0 without a language head
};

}  // namespace troupe::plan
