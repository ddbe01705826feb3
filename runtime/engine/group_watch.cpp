// Collects the news of groups. Groups run in the order of their submission, so `look` may stop once
// it has seen as many unfinished samples as are running.
#include "runtime/engine/group_watch.hpp"

#include <algorithm>
#include <utility>

namespace troupe::engine {
namespace {

template <class T>
std::vector<T> tail(const std::vector<T>& all, std::size_t from) {
  if (all.size() <= from) return {};
  return {all.begin() + static_cast<std::ptrdiff_t>(from), all.end()};
}

// A sample that holds only what `sample` has beyond its first `told` tokens.
Sample since(const Sample& sample, std::size_t told) {
  Sample part;
  part.group = sample.group;
  part.index = sample.index;
  part.tokens = tail(sample.tokens, told);
  part.versions = tail(sample.versions, told);
  part.logprobs = tail(sample.logprobs, told);
  part.raw_logprobs = tail(sample.raw_logprobs, told);
  part.facts =
      experience::part_of(sample.facts, std::min(told, sample.tokens.size()), sample.tokens.size());
  const std::size_t each = sample.top_logprobs.size() / sample.tokens.size();
  part.top_logprobs = tail(sample.top_logprobs, told * each);
  return part;
}

}  // namespace

GroupNews& news_of(core::GroupId group, News& news) {
  GroupNews& one = news[group];
  one.group = group;
  return one;
}

void GroupWatch::add(core::GroupId group, std::int32_t samples, Watch watch) {
  const bool streams = watch == Watch::kStream;
  groups_[group] = {samples, watch, false,
                    std::vector<std::size_t>(streams ? static_cast<std::size_t>(samples) : 0)};
}

std::vector<core::GroupId> GroupWatch::groups() const {
  std::vector<core::GroupId> ids;
  for (const auto& [id, watched] : groups_)
    ids.push_back(id);
  return ids;
}

void GroupWatch::take(std::vector<Sample> finished, News& news) {
  for (Sample& sample : finished) {
    const auto found = groups_.find(sample.group);
    if (found == groups_.end()) continue;
    GroupNews& one = news_of(found->first, news);
    one.first_token = !std::exchange(found->second.drew, true) || one.first_token;
    one.finished.push_back(std::move(sample));
    count(found->first);
  }
}

void GroupWatch::count(core::GroupId group) {
  const auto found = groups_.find(group);
  if (found != groups_.end() && --found->second.left == 0) groups_.erase(found);
}

void GroupWatch::look(const Engine& engine, News& news) {
  std::int64_t running = engine.counters().running_sequences;
  for (auto& [id, watched] : groups_) {
    if (running <= 0) return;
    running -= watched.left;
    const bool streams = watched.watch == Watch::kStream;
    if (!streams && (watched.drew || watched.watch == Watch::kFinished)) continue;
    const auto samples = streams ? static_cast<std::int32_t>(watched.told.size()) : 1;
    for (std::int32_t i = 0; i < samples; ++i) {
      const Sample* const sample = engine.unfinished(id, i);
      if (sample == nullptr || sample->tokens.empty()) continue;
      if (!std::exchange(watched.drew, true)) news_of(id, news).first_token = true;
      if (!streams) break;
      std::size_t& told = watched.told[static_cast<std::size_t>(i)];
      if (sample->tokens.size() <= told) continue;
      news_of(id, news).grown.push_back(since(*sample, told));
      told = sample->tokens.size();
    }
  }
}

}  // namespace troupe::engine
