#include "runtime/model/sequence_plan.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/plan_builder.hpp"

#include <string>

namespace troupe::model {
namespace {

using core::Result;

Result<void> check_sequence(const Sequence& sequence,
                            const ModelSpec& spec,
                            const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::ErrorCode::kData, where + ": " + why);
  };
  TROUPE_CHECK(sequence.learn.size() == sequence.tokens.size(), "one choice for each token");
  TROUPE_TRY(check_tokens(sequence.tokens, spec, where));
  if (!sequence.learn.empty() && sequence.learn[0] != 0) {
    return refuse("the first token cannot be a target: no token predicts it");
  }
  const std::int64_t rows = rows_of(sequence);
  if (rows <= spec.context) return {};
  return refuse(std::to_string(rows) + " tokens exceed the context of " +
                std::to_string(spec.context));
}

}  // namespace

std::int64_t rows_of(const Sequence& sequence) {
  for (std::int64_t i = std::ssize(sequence.learn); i > 0; --i) {
    if (sequence.learn[static_cast<std::size_t>(i - 1)] != 0) return i - 1;
  }
  return 0;
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

}  // namespace troupe::model
