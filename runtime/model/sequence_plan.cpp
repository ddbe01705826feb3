#include "runtime/model/sequence_plan.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/plan_builder.hpp"

#include <string>

namespace troupe::model {
namespace {

using core::Result;

Result<void> fail_at(const std::string& where, const std::string& what) {
  return core::fail(core::ErrorCode::kData, where + ": " + what);
}

Result<void> check_length(std::int64_t rows, const ModelSpec& spec, const std::string& where) {
  if (rows <= spec.context) return {};
  return fail_at(where, std::to_string(rows) + " tokens exceed the context of " +
                            std::to_string(spec.context));
}

Result<void> check_sequence(const Sequence& sequence,
                            const ModelSpec& spec,
                            const std::string& where) {
  TROUPE_CHECK(sequence.learn.size() == sequence.tokens.size(), "one choice for each token");
  TROUPE_TRY(check_tokens(sequence.tokens, spec, where));
  if (!sequence.learn.empty() && sequence.learn[0] != 0) {
    return fail_at(where, "the first token cannot be a target: no token predicts it");
  }
  return check_length(rows_of(sequence), spec, where);
}

}  // namespace

std::int64_t rows_of(const Sequence& sequence) {
  for (std::int64_t i = std::ssize(sequence.learn); i > 0; --i) {
    if (sequence.learn[static_cast<std::size_t>(i - 1)] != 0) return i - 1;
  }
  return 0;
}

std::int64_t rows_with_last(const SampleGroup& group) {
  std::int64_t rows = std::ssize(group.prompt);
  for (const auto response : group.responses)
    rows += std::ssize(response);
  return rows;
}

Result<void> build_sequence_plan(std::span<const Sequence> sequences,
                                 const ModelSpec& spec,
                                 int members,
                                 GroupPlan& out) {
  PlanBuilder builder(out, GroupRows::kPredicting);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    TROUPE_TRY(check_sequence(sequences[i], spec, "sequence " + std::to_string(i)));
    builder.add(sequences[i].tokens, sequences[i].learn);
  }
  builder.finish(spec, members);
  return {};
}

Result<void> build_last_token_plan(std::span<const SampleGroup> groups,
                                   const ModelSpec& spec,
                                   int members,
                                   GroupPlan& out) {
  return build_plan(groups, GroupRows::kLast, spec, members, out);
}

}  // namespace troupe::model
