#include "actors/data/sample_scores.hpp"

#include "actors/data/step_places.hpp"
#include "runtime/core/moments.hpp"
#include "runtime/experience/episodes.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors::data {
namespace {

// Whether one of the scores differs from another by more than rounding, as a share of the largest.
bool differ(const std::vector<double>& scores) {
  constexpr double kEqual = 1e-8;
  if (scores.empty()) return false;
  const auto [low, high] = std::ranges::minmax(scores);
  return high - low > kEqual * std::max({1.0, std::abs(low), std::abs(high)});
}

// Whether the member's scores of steps count one by one, in place of its score of the sample.
bool counts_steps(const formula::RewardFormula& formula,
                  const RewardMember& member,
                  bool has_steps) {
  return has_steps && !formula.names().contains(member.name);
}

bool is_feedback(const RewardMember& member) {
  return member.peer == kFeedbackPeer;
}

// The members as the formula sees them: one whose steps count adds nothing to a sample's score,
// though it needs one. Feedback adds what came besides that of the turns.
std::vector<RewardMember> weighed_members(const formula::RewardFormula& formula,
                                          const BookGroup& group) {
  std::vector<RewardMember> members = group.rewards->members;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const bool has_steps =
        std::any_of(group.scores.begin(), group.scores.end(),
                    [m](const auto& scores) { return !scores.steps[m].empty(); });
    if (counts_steps(formula, members[m], has_steps) && !is_feedback(members[m]))
      members[m].weight = 0;
  }
  return members;
}

// The scores of a sample as the formula sees them: of feedback whose turns count one by one, what
// came with the episode as a whole.
std::vector<std::optional<double>> components_of(
    const core::Result<formula::RewardFormula>& formula,
    const BookGroup& group,
    std::size_t sample) {
  auto components = group.scores[sample].components;
  const auto& members = group.rewards->members;
  for (std::size_t m = 0; formula && m < members.size(); ++m) {
    if (is_feedback(members[m]) && components[m] && !formula->names().contains(members[m].name))
      components[m] = group.samples[sample].feedback.value_or(0.0);
  }
  return components;
}

// The score by the formula of the set; none, with the cause, when a component that it needs is
// missing.
std::optional<double> combined(const core::Result<formula::RewardFormula>& formula,
                               SampleScores& scores,
                               const std::vector<std::optional<double>>& components,
                               const std::vector<RewardMember>& members,
                               const std::string& row) {
  auto value =
      formula ? formula->value(members, components, row) : core::Result<double>(formula.failure());
  if (value) return *value;
  if (scores.missing_cause.empty()) scores.missing_cause = value.error().message;
  return std::nullopt;
}

// The rewards of a sample's steps: those of all members whose steps count, by their weights.
std::vector<experience::StepReward> steps_of(const formula::RewardFormula& formula,
                                             const SampleScores& scores,
                                             const RewardSet& set) {
  std::vector<double> weights;
  for (std::size_t m = 0; m < set.members.size(); ++m) {
    const bool counts = counts_steps(formula, set.members[m], !scores.steps[m].empty());
    weights.push_back(counts ? set.members[m].weight : 0);
  }
  return weighed_steps(scores.steps, weights);
}

void combine(BookGroup& group) {
  const core::Result<formula::RewardFormula>& formula = group.rewards->parsed;
  const auto members = formula ? weighed_members(*formula, group)
                               : std::vector<RewardMember>(group.rewards->members);
  for (std::size_t i = 0; i < group.samples.size(); ++i) {
    const auto components = components_of(formula, group, i);
    group.samples[i].score = combined(formula, group.scores[i], components, members, group.row);
    if (!group.samples[i].score) {
      group.unscored.push_back({i, group.scores[i].missing_cause});
    } else if (formula) {
      group.samples[i].steps = steps_of(*formula, group.scores[i], *group.rewards);
    }
  }
  group.missing += static_cast<std::uint32_t>(group.unscored.size());
}

// For each sample whether it, or another of its episode, has no score.
std::vector<bool> unscored(const BookGroup& group) {
  std::vector<bool> marks;
  for (const experience::Trajectory& sample : group.samples)
    marks.push_back(!sample.score);
  experience::mark_episodes(group.samples, marks);
  return marks;
}

}  // namespace

void add_scores(BookGroup& group, const GroupScored& given) {
  if (!given.row.empty()) group.row = given.row;
  const std::size_t member = given.member;
  const std::string& name = group.rewards->members[member].name;
  for (std::size_t i = 0; i < given.scores.size(); ++i) {
    SampleScores& sample = group.scores[i];
    if (i < given.extras.size()) sample.extras.add(name, given.extras[i]);
    if (i < given.steps.size()) sample.steps[member] = given.steps[i];
    if (given.scores[i] && std::isfinite(*given.scores[i])) {
      sample.components[member] = given.scores[i];
    } else if (const std::string cause = i < given.causes.size() ? given.causes[i] : "";
               sample.missing_cause.empty() && cause != kNotAsked) {
      sample.missing_cause = "reward " + name + ": " + (cause.empty() ? "no score" : cause);
    }
  }
  group.scored[member] = true;
  if (std::count(group.scored.begin(), group.scored.end(), false) == 0) combine(group);
}

ScoredEpisodes scored_episodes(const BookGroup& group) {
  const std::vector<bool> without = unscored(group);
  ScoredEpisodes result;
  std::vector<double> totals;
  bool steps = false;
  for (const experience::Episode& episode : experience::episodes_of(group.samples)) {
    if (without[episode.begin]) continue;
    // Finite rewards of one episode may add up to more than a double holds.
    constexpr double kMost = std::numeric_limits<double>::max();
    totals.push_back(std::clamp(experience::episode_total(group.samples, episode), -kMost, kMost));
    for (std::size_t i = episode.begin; i < episode.end; ++i)
      steps = steps || !group.samples[i].steps.empty();
  }
  result.count = totals.size();
  result.mean_score = core::stable_mean(totals);
  // Rewards of steps teach by where they are.
  result.differ = steps || differ(totals);
  return result;
}

std::size_t keep_scored(BookGroup& group) {
  const std::vector<bool> drop = unscored(group);
  experience::drop_samples(group.samples, drop);
  for (std::size_t i = drop.size(); i-- > 0;) {
    if (drop[i]) group.scores.erase(group.scores.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return static_cast<std::size_t>(std::count(drop.begin(), drop.end(), true));
}

GroupScored feedback_scores(const BookGroup& group, std::size_t member) {
  const auto& samples = group.samples;
  GroupScored given{group.ticket, member, {}, {}, {}};
  const auto paths = experience::paths_of(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto turns =
        experience::path_steps(samples, paths[i], &experience::Trajectory::feedback_steps);
    const bool some = samples[i].feedback || !turns.empty();
    double sum = samples[i].feedback.value_or(0.0);
    for (const experience::StepReward& turn : turns)
      sum += turn.reward;
    given.scores.push_back(some ? std::optional(sum) : std::nullopt);
    given.causes.emplace_back(some ? "" : "none came with the episode");
    given.steps.push_back(samples[i].feedback_steps);
  }
  return given;
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

}  // namespace troupe::actors::data
