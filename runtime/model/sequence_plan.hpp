// Builds the plan of a micro-batch of plain sequences in which chosen tokens are targets, or in
// which some tokens are read at chosen places. Sequences never attend to each other. Only rows that
// predict a target go to the head, and rows that follow a sequence's last prediction are left out.
// Pure functions on the caller's thread; plans are reused without allocation.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstdint>
#include <span>

namespace troupe::model {

struct Sequence {
  std::span<const std::int32_t> tokens;
  std::span<const std::uint8_t> learn;  // [tokens]: nonzero where token i is a target; 0 at i = 0
};

// The number of rows that a sequence takes in a plan: those of its tokens before the last target.
std::int64_t rows_of(const Sequence& sequence);

// Builds `out`, with the targets ordered by sequence and position. A sequence without a target
// takes no row. Errors (kData, naming the sequence): more tokens before the last target than the
// context, an id outside the vocabulary, a target at position 0 (nothing predicts it).
core::Result<void> build_sequence_plan(std::span<const Sequence> sequences,
                                       const ModelSpec& spec,
                                       int members,
                                       GroupPlan& out);

// The number of rows that a sequence takes in a plan of choices: those up to its last place.
std::int64_t rows_of_choice(const Sequence& sequence);

// Builds `out` for choices among the same tokens: each token with `learn` set is a place (the first
// may be one), and its own row has a target for each of `choices`, in their order. Targets are
// ordered by sequence, place and choice. Errors: as above.
core::Result<void> build_choice_plan(std::span<const Sequence> sequences,
                                     std::span<const std::int32_t> choices,
                                     const ModelSpec& spec,
                                     int members,
                                     GroupPlan& out);

}  // namespace troupe::model
