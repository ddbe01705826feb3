// From the engine's samples to news. Groups run in the order of their submission, so the search for
// new tokens ends when as many sequences were seen as are running.
#include "apps/serving/engine_watch.hpp"

namespace troupe::app {

namespace {

template <class T>
std::vector<T> tail(const std::vector<T>& all, std::size_t from) {
  if (all.size() <= from) return {};
  return {all.begin() + static_cast<std::ptrdiff_t>(from), all.end()};
}

// What a sample has beyond its first `told` tokens.
engine::Sample since(const engine::Sample& sample, std::size_t told) {
  engine::Sample part;
  part.group = sample.group;
  part.index = sample.index;
  part.tokens = tail(sample.tokens, told);
  part.versions = tail(sample.versions, told);
  part.raw_logprobs = tail(sample.raw_logprobs, told);
  const std::size_t each = sample.top_logprobs.size() / sample.tokens.size();
  part.top_logprobs = tail(sample.top_logprobs, told * each);
  return part;
}

}  // namespace

void EngineWatch::add(core::GroupId group, std::int32_t samples, bool stream) {
  Watched watched;
  watched.left = samples;
  watched.stream = stream;
  if (stream) watched.told.resize(static_cast<std::size_t>(samples));
  groups_[group.value] = std::move(watched);
}

std::vector<core::GroupId> EngineWatch::groups() const {
  std::vector<core::GroupId> ids;
  for (const auto& [id, watched] : groups_)
    ids.push_back({id});
  return ids;
}

std::vector<GroupNews> EngineWatch::look(engine::Engine& engine,
                                         std::vector<engine::Sample> finished) {
  std::map<std::uint64_t, GroupNews> news;
  const auto of = [&](std::uint64_t id) -> GroupNews& {
    GroupNews& one = news[id];
    one.group = {id};
    return one;
  };
  for (engine::Sample& sample : finished) {
    const auto found = groups_.find(sample.group.value);
    if (found == groups_.end()) continue;
    GroupNews& one = of(found->first);
    one.first_token = one.first_token || !std::exchange(found->second.drew, true);
    --found->second.left;
    one.finished.push_back(std::move(sample));
  }
  std::int64_t running = engine.counters().running_sequences;
  for (auto& [id, watched] : groups_) {
    if (running <= 0) break;
    running -= watched.left;
    if (watched.left == 0 || (watched.drew && !watched.stream)) continue;
    GroupNews grown;
    grow(engine, {id}, watched, grown);
    if (grown.grown.empty() && !grown.first_token) continue;
    GroupNews& one = of(id);
    one.grown = std::move(grown.grown);
    one.first_token = one.first_token || grown.first_token;
  }
  std::vector<GroupNews> out;
  for (auto& [id, one] : news) {
    if (groups_.at(id).left == 0) groups_.erase(id);
    out.push_back(std::move(one));
  }
  return out;
}

void EngineWatch::grow(engine::Engine& engine,
                       core::GroupId group,
                       Watched& watched,
                       GroupNews& news) {
  const std::int32_t samples = watched.stream ? static_cast<std::int32_t>(watched.told.size()) : 1;
  for (std::int32_t i = 0; i < samples; ++i) {
    const engine::Sample* const sample = engine.unfinished(group, i);
    if (sample == nullptr || sample->tokens.empty()) continue;
    news.first_token = news.first_token || !std::exchange(watched.drew, true);
    if (!watched.stream) return;
    std::size_t& told = watched.told[static_cast<std::size_t>(i)];
    if (sample->tokens.size() <= told) continue;
    news.grown.push_back(since(*sample, told));
    told = sample->tokens.size();
  }
}

}  // namespace troupe::app
