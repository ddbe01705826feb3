// Fills a GroupPlan for a micro-batch of sample groups (group_plan.cpp) or of plain sequences
// (sequence_plan.cpp): rows, segments, KV slots, block tables, head rows and targets. One owner,
// one thread; memory is bounded by the plan that it fills. Internal to this room.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/group_plan.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::model {

// The number of rows in a sample's own segment, which follows its prompt's segment.
std::int64_t own_rows(std::span<const std::int32_t> response, GroupRows rows);

class PlanBuilder {
 public:
  PlanBuilder(GroupPlan& out, GroupRows rows);

  // kData, naming `where`: an empty prompt, an id outside the vocabulary, more rows than the
  // context, targets that are no ascending indices, or, with kLast, an empty response.
  core::Result<void> check(const SampleGroup& group,
                           const ModelSpec& spec,
                           const std::string& where) const;
  // Adds the prompt's rows once, then the rows of each sample.
  void add(const SampleGroup& group);
  // Adds one sequence: the rows before its last target. Tokens with `learn` set are targets; token
  // 0 cannot be one.
  void add(std::span<const std::int32_t> tokens, std::span<const std::uint8_t> learn);
  // Adds one sequence: the rows up to the last token with `learn` set. The own row of each such
  // token has all of `choices` as targets.
  void add(std::span<const std::int32_t> tokens,
           std::span<const std::uint8_t> learn,
           std::span<const std::int32_t> choices);
  void finish(const ModelSpec& spec, int members);

 private:
  void add_row(std::int32_t token, std::int64_t position);
  // Adds the first `rows` tokens as a sequence of its own; calls `targets_of(i)` after row i.
  template <class TargetsOf>
  void add_sequence(std::span<const std::int32_t> tokens, std::size_t rows, TargetsOf targets_of);
  void add_prompt(const SampleGroup& group, std::int64_t prompt_block);
  void add_sample(const SampleGroup& group, std::size_t index, std::int64_t own_block);
  void add_target(std::int32_t row, std::int32_t token);

  ForwardPlan& plan_;
  TokenTargets& targets_;
  const GroupRows rows_;
  std::int64_t next_block_ = 0;
  std::int64_t prompt_table_ = 0;        // of the group being added
  std::int32_t prompt_logit_row_ = 0;    // of the group being added
  std::vector<std::int64_t> own_block_;  // first own block of each sample of that group
};

// kData, naming `where`: an id outside the vocabulary.
core::Result<void> check_tokens(std::span<const std::int32_t> tokens,
                                const ModelSpec& spec,
                                const std::string& where);

}  // namespace troupe::model
