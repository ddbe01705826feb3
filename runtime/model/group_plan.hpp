// The plan of a micro-batch: groups of samples, each group's prompt computed once.
//
// A group is one segment for the prompt and one for each sample: its response without the last
// token, whose row nobody needs. The samples' block tables start with the prompt's full KV blocks;
// a last, partly filled block is written a second time into each sample's own copy. Attention goes
// by absolute position, so every row has the bits it would have with each sample computed alone.
// Pure functions on the caller's thread; the plan is reused without allocation.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/plan.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::model {

struct SampleGroup {
  std::span<const std::int32_t> prompt;                  // at least one token
  std::vector<std::span<const std::int32_t>> responses;  // an empty one has no targets
};

// Which log-probs are wanted: token `token[i]` as predicted by row `plan.logit_rows[row[i]]`.
struct TokenTargets {
  std::vector<std::int32_t> row;  // index into plan.logit_rows; several targets may share a row
  std::vector<std::int32_t> token;
  std::int64_t size() const { return static_cast<std::int64_t>(token.size()); }
};

struct GroupPlan {
  ForwardPlan plan;
  TokenTargets targets;  // every response token, by group, sample, position; none of kLast
};

// Which rows of a group's samples go to the head.
enum class GroupRows {
  kPredicting,  // every row that predicts a response token; a response's last token has no row
  kLast,        // the last token of every response, which has a row then; no targets
};

// Rows that the group takes in a plan, for cutting an update into micro-batches.
std::int64_t rows_of(const SampleGroup& group, GroupRows rows = GroupRows::kPredicting);

// Builds `out`, finished for a team of `members`; plan.logit_rows goes group by group, sample by
// sample. Errors (kData, naming group and sample): an empty prompt, a sequence longer than the
// context, an id outside the vocabulary, with kLast an empty response.
core::Result<void> build_group_plan(std::span<const SampleGroup> groups,
                                    const ModelSpec& spec,
                                    int members,
                                    GroupPlan& out,
                                    GroupRows rows = GroupRows::kPredicting);

}  // namespace troupe::model
