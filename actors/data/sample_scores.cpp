#include "actors/data/sample_scores.hpp"

#include "actors/data/step_places.hpp"
#include "actors/protocol/reward_formula.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

// Whether the member's scores of steps count one by one, in place of its score of the sample.
bool counts_steps(const RewardFormula& formula, const RewardMember& member, bool has_steps) {
  return has_steps && !formula.names().contains(member.name);
}

// The members as the formula sees them: one whose steps count adds nothing to a sample's score,
// though it needs one.
std::vector<RewardMember> weighed_members(const RewardFormula& formula, const BookGroup& group) {
  std::vector<RewardMember> members = group.rewards->members;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const bool has_steps =
        std::any_of(group.scores.begin(), group.scores.end(),
                    [m](const auto& scores) { return !scores.steps[m].empty(); });
    if (counts_steps(formula, members[m], has_steps)) members[m].weight = 0;
  }
  return members;
}

// The score by the formula of the set; none, with the cause, when a component that it needs is
// missing.
std::optional<double> combined(const core::Result<RewardFormula>& formula,
                               SampleScores& scores,
                               const std::vector<RewardMember>& members,
                               const std::string& row) {
  auto value = formula ? formula->value(members, scores.components, row)
                       : core::Result<double>(formula.failure());
  if (value) return *value;
  if (scores.missing_cause.empty()) scores.missing_cause = value.error().message;
  return std::nullopt;
}

// The rewards of a sample's steps: those of all members whose steps count, by their weights.
std::vector<experience::StepReward> steps_of(const RewardFormula& formula,
                                             const SampleScores& scores,
                                             const RewardSet& set) {
  std::vector<double> weights;
  for (std::size_t m = 0; m < set.members.size(); ++m) {
    const bool counts = counts_steps(formula, set.members[m], !scores.steps[m].empty());
    weights.push_back(counts ? set.members[m].weight : 0);
  }
  return weighed_steps(scores.steps, weights);
}

}  // namespace

void combine(BookGroup& group) {
  const auto formula = RewardFormula::parse(group.rewards->formula);
  const auto members = formula ? weighed_members(*formula, group)
                               : std::vector<RewardMember>(group.rewards->members);
  for (std::size_t i = 0; i < group.samples.size(); ++i) {
    group.samples[i].score = combined(formula, group.scores[i], members, group.row);
    if (!group.samples[i].score) {
      group.unscored.push_back({i, group.scores[i].missing_cause});
    } else if (formula) {
      group.samples[i].steps = steps_of(*formula, group.scores[i], *group.rewards);
    }
  }
  group.missing += static_cast<std::uint32_t>(group.unscored.size());
}

bool fit_samples(const std::vector<std::vector<experience::StepReward>>& steps,
                 const std::vector<experience::Trajectory>& samples) {
  if (steps.empty()) return true;
  return std::equal(steps.begin(), steps.end(), samples.begin(), samples.end(),
                    [](const auto& list, const experience::Trajectory& sample) {
                      return std::all_of(list.begin(), list.end(), [&](const auto& step) {
                        return step.token < sample.tokens.size();
                      });
                    });
}

}  // namespace troupe::actors
