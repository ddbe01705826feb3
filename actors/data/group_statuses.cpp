#include "actors/data/group_statuses.hpp"

#include "actors/data/sample_scores.hpp"
#include "runtime/core/moments.hpp"
#include "runtime/learn/correlation.hpp"

#include <algorithm>

namespace troupe::actors::data {
namespace {

std::size_t age_of(core::Version version, const std::vector<core::Version>& starts) {
  return static_cast<std::size_t>(std::count_if(
      starts.begin(), starts.end(), [version](core::Version start) { return start > version; }));
}

struct Named {
  std::string name;
  std::vector<double> values;
};

void add(std::vector<Named>& all, const std::string& name, double value) {
  auto own = std::find_if(all.begin(), all.end(), [&](const Named& n) { return n.name == name; });
  if (own == all.end()) own = all.insert(own, Named{name, {}});
  own->values.push_back(value);
}

// Mean by name, in the order in which the names appeared.
std::vector<std::pair<std::string, double>> means_of(const std::vector<Named>& all) {
  std::vector<std::pair<std::string, double>> means;
  for (const Named& own : all)
    means.emplace_back(own.name, core::stable_mean(own.values));
  return means;
}

GroupStatus status_of(const BookGroup& group) {
  GroupStatus status;
  status.ticket = group.ticket;
  status.state = group.state;
  status.cause = group.cause;
  status.filtered = group.filtered;
  status.missing = group.missing;
  status.samples = static_cast<std::uint32_t>(group.samples.size());
  for (const experience::Trajectory& sample : group.samples) {
    status.tokens += sample.tokens.size();
    status.truncated += sample.truncated() ? 1 : 0;
  }
  if (status.ready()) status.mean_score = scored_episodes(group).mean_score;
  return status;
}

void add_scores(const RewardSet& set,
                const SampleScores& sample,
                std::vector<Named>& rewards,
                std::vector<Named>& extras) {
  for (std::size_t m = 0; m < set.members.size(); ++m) {
    // A component that the formula of the set does not need may be missing.
    if (sample.components[m]) add(rewards, set.members[m].name, *sample.components[m]);
  }
  for (const SampleExtra& extra : sample.extras.all())
    if (extra.number) add(extras, extra.name, *extra.number);
}

void add_ages(const experience::Trajectory& sample,
              const std::vector<core::Version>& starts,
              GroupStatuses& statuses) {
  if (sample.versions.runs().size() > 1) ++statuses.crossed;
  if (starts.empty()) return;
  for (const auto& run : sample.versions.runs()) {
    const std::size_t age = age_of(run.version, starts);
    if (statuses.staleness.size() <= age) statuses.staleness.resize(age + 1);
    statuses.staleness[age] += run.count;
  }
}

}  // namespace

GroupStatuses statuses_of(const std::vector<const BookGroup*>& groups,
                          const std::vector<core::Version>& starts) {
  GroupStatuses statuses;
  std::vector<Named> rewards, extras;
  std::vector<double> of_samples, lengths;
  for (const BookGroup* group : groups) {
    statuses.groups.push_back(status_of(*group));
    if (group->state != GroupState::kReady) continue;
    for (const experience::Trajectory& sample : group->samples) {
      add_ages(sample, starts, statuses);
      of_samples.push_back(sample.score.value_or(0.0));
      lengths.push_back(static_cast<double>(sample.tokens.size()));
    }
    for (const SampleScores& scores : group->scores)
      add_scores(*group->rewards, scores, rewards, extras);
  }
  statuses.rewards = means_of(rewards);
  statuses.extras = means_of(extras);
  if (const auto value = learn::pearson(of_samples, lengths))
    statuses.lengths.emplace_back("length_pearson", *value);
  if (const auto value = learn::spearman(of_samples, lengths))
    statuses.lengths.emplace_back("length_spearman", *value);
  return statuses;
}

GroupCounts counts_of(const std::vector<const BookGroup*>& groups) {
  GroupCounts counts;
  for (const BookGroup* group : groups) {
    ++counts.groups;
    if (group->state != GroupState::kIssued) ++counts.sampled;
    if (group->state == GroupState::kReady || group->state == GroupState::kFailed) ++counts.scored;
  }
  return counts;
}

}  // namespace troupe::actors::data
