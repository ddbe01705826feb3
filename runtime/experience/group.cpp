#include "runtime/experience/group.hpp"

#include "runtime/experience/sample_fields.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::experience {
namespace {

core::Failure refuse(const std::string& why, std::string_view advice = {}) {
  return core::fail(core::ErrorCode::kData, "a sample " + why, advice);
}

}  // namespace

core::Result<void> check_turns(const Trajectory& sample) {
  const std::vector<Turn>& turns = sample.turns;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const bool in_order = i == 0 ? turns[i].begin == 0 : turns[i].begin > turns[i - 1].begin;
    if (in_order && turns[i].begin < sample.tokens.size()) continue;
    return refuse("of " + std::to_string(sample.tokens.size()) + " tokens whose turn " +
                      std::to_string(i + 1) + " begins with token " +
                      std::to_string(turns[i].begin),
                  "turns begin in order, the first with token 0, each with a token of its own");
  }
  return {};
}

core::Result<void> check_delivered(const Trajectory& sample) {
  const std::size_t tokens = sample.tokens.size();
  bool raw = true;
  each_sample_field<kAddedLater>([&](const auto& field) {
    using Member = typename std::remove_cvref_t<decltype(field)>::Member;
    raw = raw && sample.*field.member == Member();
  });
  if (!raw) return refuse("that was scored already");
  if (tokens == 0 || sample.behaviour.size() != tokens || sample.versions.size() != tokens) {
    return refuse("of " + std::to_string(tokens) + " tokens with " +
                  std::to_string(sample.behaviour.size()) + " log-probs and " +
                  std::to_string(sample.versions.size()) + " versions");
  }
  const std::string wrong = wrong_count(sample.facts, tokens);
  if (!wrong.empty()) return refuse("of " + std::to_string(tokens) + " tokens with " + wrong);
  TROUPE_TRY(check_turns(sample));
  if (sample.feedback && !std::isfinite(*sample.feedback))
    return refuse("whose feedback is not a finite number");
  const bool good = std::all_of(sample.feedback_steps.begin(), sample.feedback_steps.end(),
                                [tokens](const StepReward& step) {
                                  return step.token < tokens && std::isfinite(step.reward);
                                });
  if (!good) return refuse("with feedback at none of its tokens, or not a finite number");
  return {};
}

}  // namespace troupe::experience
