#include "runtime/model/sequence_plan.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/plan_builder.hpp"

#include <algorithm>
#include <string>

namespace troupe::model {
namespace {

Result<void> check_sequence(const Sequence& sequence,
                            std::int64_t rows,
                            const ModelSpec& spec,
                            const std::string& where) {
  TROUPE_CHECK(sequence.learn.size() == sequence.tokens.size(), "one choice for each token");
  TROUPE_TRY(check_tokens(sequence.tokens, spec, where));
  if (rows <= spec.context) return {};
  return core::fail(core::ErrorCode::kData, where + ": " + std::to_string(rows) +
                                                " tokens exceed the context of " +
                                                std::to_string(spec.context));
}

Result<void> check_targets(const Sequence& sequence,
                           const ModelSpec& spec,
                           const std::string& where) {
  TROUPE_TRY(check_sequence(sequence, rows_of(sequence), spec, where));
  if (sequence.learn.empty() || sequence.learn[0] == 0) return {};
  return core::fail(core::ErrorCode::kData,
                    where + ": the first token cannot be a target: no token predicts it");
}

}  // namespace

std::int64_t rows_of_choice(const Sequence& sequence) {
  std::int64_t rows = std::ssize(sequence.learn);
  while (rows > 0 && sequence.learn[static_cast<std::size_t>(rows - 1)] == 0)
    --rows;
  return rows;
}

std::int64_t rows_of(const Sequence& sequence) {
  return std::max<std::int64_t>(rows_of_choice(sequence) - 1, 0);
}

Result<void> build_sequence_plan(std::span<const Sequence> sequences,
                                 const ModelSpec& spec,
                                 int members,
                                 GroupPlan& out) {
  PlanBuilder builder(out, GroupRows::kPredicting);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    TROUPE_TRY(check_targets(sequences[i], spec, "sequence " + std::to_string(i)));
    builder.add(sequences[i].tokens, sequences[i].learn);
  }
  builder.finish(spec, members);
  return {};
}

Result<void> build_choice_plan(std::span<const Sequence> sequences,
                               std::span<const std::int32_t> choices,
                               const ModelSpec& spec,
                               int members,
                               GroupPlan& out) {
  PlanBuilder builder(out, GroupRows::kPredicting);
  TROUPE_TRY(check_tokens(choices, spec, "a choice"));
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::string where = "sequence " + std::to_string(i);
    TROUPE_TRY(check_sequence(sequences[i], rows_of_choice(sequences[i]), spec, where));
    builder.add(sequences[i].tokens, sequences[i].learn, choices);
  }
  builder.finish(spec, members);
  return {};
}

}  // namespace troupe::model
