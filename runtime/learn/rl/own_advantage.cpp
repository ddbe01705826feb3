#include "runtime/learn/rl/own_advantage.hpp"

#include "runtime/core/check.hpp"
#include "runtime/experience/episodes.hpp"
#include "runtime/learn/ranks/rank_group.hpp"

#include <algorithm>
#include <array>

namespace troupe::learn {
namespace {

template <class Value>
void append_all(std::vector<double>& to, const Value& from) {
  for (const auto value : from)
    to.push_back(static_cast<double>(value));
}

// For each token the number of its turn in its sample.
void append_turns(std::vector<double>& to, const experience::Trajectory& sample) {
  std::size_t next = 0;
  for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
    while (next < sample.turns.size() && sample.turns[next].begin <= t)
      ++next;
    to.push_back(next == 0 ? 0.0 : static_cast<double>(next - 1));
  }
}

// For each sample the number of its episode in its group.
void append_episodes(std::vector<double>& to, const experience::Group& group) {
  double number = 0;
  for (const experience::Episode& episode : experience::episodes_of(group.samples)) {
    to.insert(to.end(), episode.leaves(), number);
    ++number;
  }
}

}  // namespace

UpdateArrays arrays_of(const UpdateContext& update) {
  UpdateArrays arrays;
  double number = 0;
  for (const std::size_t index : by_ticket(update.groups)) {
    const experience::Group& group = update.groups[index];
    arrays.update = group.ticket.update;
    for (std::size_t i = 0; i < group.samples.size(); ++i) {
      const experience::Trajectory& sample = group.samples[i];
      arrays.scores.push_back(experience::sample_total(group.samples, i));
      arrays.groups.push_back(number);
      arrays.lengths.push_back(static_cast<double>(sample.tokens.size()));
      arrays.truncated.push_back(sample.truncated() ? 1 : 0);
      append_all(arrays.advantages, update.advantages[index][i]);
      append_all(arrays.logprobs,
                 update.scored.empty() ? sample.behaviour : update.scored[index][i]);
      append_all(arrays.sampled_logprobs, sample.behaviour);
      append_all(arrays.reference_logprobs, sample.reference);
      append_all(arrays.teacher_logprobs, sample.teacher);
      append_all(arrays.versions, sample.versions);
      append_all(arrays.values, sample.values);
      append_turns(arrays.turns, sample);
    }
    append_episodes(arrays.episodes, group);
    ++number;
  }
  return arrays;
}

core::Result<void> apply_own_advantage(AdvantageSource* source,
                                       RankGroup* ranks,
                                       UpdateContext& update) {
  const UpdateArrays arrays = arrays_of(update);
  const std::size_t tokens = arrays.advantages.size();
  const std::array counts = {2 * tokens};
  TROUPE_TRY_ASSIGN(
      numbers, share_parts<double>(
                   ranks, counts, [&](std::size_t, std::vector<double>& to) -> core::Result<void> {
                     TROUPE_CHECK(source != nullptr, "rank 0 has the source");
                     TROUPE_TRY_ASSIGN(own, source->compute(arrays));
                     to.insert(to.end(), own.advantages.begin(), own.advantages.end());
                     to.insert(to.end(), own.weights.begin(), own.weights.end());
                     return {};
                   }));
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(tokens);
  const bool weighs = std::any_of(middle, numbers.end(), [](double weight) { return weight != 1; });
  update.token_weights.clear();
  if (weighs) update.token_weights.resize(update.groups.size());
  std::size_t next = 0;
  for (const std::size_t index : by_ticket(update.groups)) {
    for (auto& sample : update.advantages[index]) {
      if (weighs) update.token_weights[index].emplace_back();
      for (double& advantage : sample) {
        if (weighs) update.token_weights[index].back().push_back(numbers[tokens + next]);
        advantage = numbers[next++];
      }
    }
  }
  return {};
}

}  // namespace troupe::learn
