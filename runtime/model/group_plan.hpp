// Builds the plan of a micro-batch of sample groups. Each group's prompt is computed once.
//
// A group has one segment for the prompt and one for each sample. A sample's segment is its
// response without the last token, which predicts nothing (kLast below keeps it). The samples'
// block tables start with the prompt's full KV blocks. If the prompt's last block is only partly
// filled, its rows are also written to each sample's own copy of that block. Attention goes by
// absolute position, so every row has the same bits as if each sample were computed alone. Pure
// functions on the caller's thread; the plan is reused without allocation.
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
  // For each response, the ascending indices of tokens that are targets. Empty, or an empty
  // entry: all are. The others are read like a prompt's tokens.
  std::vector<std::span<const std::uint32_t>> targets{};

  // Whether the response has its own list of targets.
  bool chooses(std::size_t response) const {
    return response < targets.size() && !targets[response].empty();
  }
};

// Which log-probs are wanted: token `token[i]` as predicted by row `plan.logit_rows[row[i]]`.
struct TokenTargets {
  std::vector<std::int32_t> row;  // index into plan.logit_rows; several targets may share a row
  std::vector<std::int32_t> token;
  std::int64_t size() const { return static_cast<std::int64_t>(token.size()); }
};

struct GroupPlan {
  ForwardPlan plan;
  TokenTargets targets;  // those of the responses, by group, sample, position; none with kLast
};

// Which rows of a group's samples go to the head.
enum class GroupRows {
  kPredicting,  // every row that predicts a target; the last token has no row
  kLast,        // the row of the last token of every response; there are no targets
};

// The number of rows that a group takes in a plan. Callers use it to cut updates into
// micro-batches.
std::int64_t rows_of(const SampleGroup& group, GroupRows rows = GroupRows::kPredicting);

// Builds `out`, finished for a team of `members`. plan.logit_rows is ordered by group, then by
// sample. Errors (kData, naming group and sample): an empty prompt, a sample with more rows than
// the context, an id outside the vocabulary, targets that are no ascending indices, or, with kLast,
// an empty response.
core::Result<void> build_group_plan(std::span<const SampleGroup> groups,
                                    const ModelSpec& spec,
                                    int members,
                                    GroupPlan& out,
                                    GroupRows rows = GroupRows::kPredicting);

}  // namespace troupe::model
