#include "actors/data/group_statuses.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

std::size_t age_of(core::Version version, const std::vector<core::Version>& starts) {
  return static_cast<std::size_t>(std::count_if(
      starts.begin(), starts.end(), [version](core::Version start) { return start > version; }));
}

// MeansByName by name, in the order in which the names come.
class MeansByName {
 public:
  void add(const std::string& name, double value) {
    Sum& sum = sum_of(name);
    sum.total += value;
    ++sum.count;
  }
  std::vector<std::pair<std::string, double>> means() const {
    std::vector<std::pair<std::string, double>> result;
    for (const Sum& sum : sums_) {
      result.emplace_back(sum.name, sum.total / static_cast<double>(sum.count));
    }
    return result;
  }

 private:
  struct Sum {
    std::string name;
    double total = 0;
    std::uint64_t count = 0;
  };
  Sum& sum_of(const std::string& name) {
    for (Sum& sum : sums_) {
      if (sum.name == name) return sum;
    }
    return sums_.emplace_back(Sum{name, 0, 0});
  }
  std::vector<Sum> sums_;
};

GroupStatus status_of(const BookGroup& group) {
  GroupStatus status;
  status.ticket = group.ticket;
  status.state = group.state;
  status.cause = group.cause;
  status.filtered = group.filtered;
  status.missing = group.missing;
  status.samples = static_cast<std::uint32_t>(group.samples.size());
  double sum = 0;
  for (const experience::Trajectory& sample : group.samples) {
    status.tokens += sample.tokens.size();
    sum += sample.score.value_or(0.0);
  }
  if (status.ready()) status.mean_score = sum / static_cast<double>(status.samples);
  return status;
}

void add_scores(const RewardSet& set, const SampleScores& sample, MeansByName& rewards, MeansByName& extras) {
  for (std::size_t m = 0; m < set.members.size(); ++m)
    rewards.add(set.members[m].name, sample.components[m].value_or(0.0));  // ready: it has them all
  for (const SampleExtra& extra : sample.extras.all())
    if (extra.number) extras.add(extra.name, *extra.number);
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
  MeansByName rewards, extras;
  for (const BookGroup* group : groups) {
    statuses.groups.push_back(status_of(*group));
    if (group->state != GroupState::kReady) continue;
    for (const experience::Trajectory& sample : group->samples)
      add_ages(sample, starts, statuses);
    for (const SampleScores& scores : group->scores)
      add_scores(*group->rewards, scores, rewards, extras);
  }
  statuses.rewards = rewards.means();
  statuses.extras = extras.means();
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

}  // namespace troupe::actors
