// Groups from question to answer.
#include "actors/generator/group_book.hpp"

#include "actors/data/data_role.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::actors {
namespace {

engine::GroupRequest request_of(core::GroupId id,
                                const PromptTask& task,
                                const SamplingSpec& sampling) {
  engine::GroupRequest request;
  request.id = id;
  request.prompt = task.tokens;
  request.samples = task.samples;
  request.seed = task.seed;
  request.sampling.temperature = sampling.temperature;
  request.sampling.top_p = sampling.top_p;
  request.sampling.min_p = sampling.min_p;
  request.sampling.top_k = sampling.top_k;
  request.sampling.max_new_tokens = sampling.max_new_tokens;
  request.sampling.stop_strings = sampling.stop;
  return request;
}

}  // namespace

bool GroupBook::Before::operator()(const core::Ticket& a, const core::Ticket& b) const {
  const bool a_trains = a.update < kFirstEvaluation, b_trains = b.update < kFirstEvaluation;
  if (a_trains != b_trains) return b_trains;
  return a < b;
}

void GroupBook::ask(const core::Ticket& ticket,
                    const SamplingSpec& sampling,
                    core::Version version_min,
                    std::shared_ptr<GenerateCall> call) {
  Group& group = groups_[ticket];
  if (group.calls.empty()) {
    group.sampling = sampling;
    group.version_min = version_min;
  }
  ++call->open;
  group.calls.push_back(std::move(call));
}

std::vector<core::Ticket> GroupBook::take_asked(std::size_t count_max) {
  std::vector<core::Ticket> tickets;
  for (auto& [ticket, group] : groups_) {
    if (tickets.size() == count_max) break;
    if (group.state != State::kAsked) continue;
    group.state = State::kFetching;
    tickets.push_back(ticket);
  }
  return tickets;
}

void GroupBook::put_prompt(PromptTask task) {
  const auto place = groups_.find(task.ticket);
  if (place == groups_.end() || place->second.state != State::kFetching) return;
  place->second.task = std::move(task);
  place->second.state = State::kHeld;
}

std::vector<engine::GroupRequest> GroupBook::submit(core::Version version) {
  std::vector<engine::GroupRequest> requests;
  for (auto& [ticket, group] : groups_) {
    if (group.state != State::kHeld || group.version_min > version) continue;
    const core::GroupId id{next_group_++};
    group.state = State::kRunning;
    running_.emplace(id, ticket);
    requests.push_back(request_of(id, group.task, group.sampling));
  }
  return requests;
}

SampledGroup GroupBook::leave(core::GroupId id, bool cut) {
  const core::Ticket ticket = running_.at(id);
  running_.erase(id);
  Group& group = groups_.at(ticket);
  group.state = State::kLeaving;
  SampledGroup sampled{ticket, std::move(group.samples), cut};
  std::sort(sampled.samples.begin(), sampled.samples.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  return sampled;
}

std::optional<SampledGroup> GroupBook::put_sample(engine::Sample sample) {
  const auto place = running_.find(sample.group);
  if (place == running_.end()) return std::nullopt;
  Group& group = groups_.at(place->second);
  const core::GroupId id = sample.group;
  group.samples.push_back(std::move(sample));
  if (static_cast<std::int32_t>(group.samples.size()) < group.task.samples) return std::nullopt;
  return leave(id, false);
}

std::vector<core::GroupId> GroupBook::cut(const std::vector<core::Ticket>& tickets,
                                          std::vector<core::Ticket>& retired) {
  std::vector<core::GroupId> aborts;
  for (const core::Ticket& ticket : tickets) {
    const auto place = groups_.find(ticket);
    if (place == groups_.end() || place->second.state == State::kLeaving) continue;
    if (place->second.state != State::kRunning) {
      place->second.state = State::kLeaving;
      retired.push_back(ticket);
      continue;
    }
    const auto entry = std::find_if(running_.begin(), running_.end(),
                                    [&ticket](const auto& one) { return one.second == ticket; });
    aborts.push_back(entry->first);
  }
  return aborts;
}

std::optional<SampledGroup> GroupBook::aborted(core::GroupId id,
                                               std::vector<core::Ticket>& retired) {
  if (!running_.contains(id)) return std::nullopt;
  SampledGroup sampled = leave(id, true);
  if (sampled.samples.size() >= 2) return sampled;
  retired.push_back(sampled.ticket);
  return std::nullopt;
}

void GroupBook::end(const core::Ticket& ticket,
                    const SampledGroup* sampled,
                    const std::optional<core::Error>& error) {
  const auto place = groups_.find(ticket);
  if (place == groups_.end()) return;
  std::erase_if(running_, [&ticket](const auto& one) { return one.second == ticket; });
  Group group = std::move(place->second);
  groups_.erase(place);
  std::uint64_t tokens = 0, samples = 0;
  if (sampled != nullptr) {
    samples = sampled->samples.size();
    for (const auto& sample : sampled->samples)
      tokens += sample.tokens.size();
  }
  for (const auto& call : group.calls) {
    call->totals.samples += samples;
    call->totals.tokens += tokens;
    call->totals.prompt_tokens += group.task.tokens.size();
    if (error && !call->error) call->error = error;
    TROUPE_CHECK(call->open > 0, "a group ends once for each who asked");
    if (--call->open == 0) call->done->fire();
  }
}

std::vector<std::pair<core::GroupId, core::Ticket>> GroupBook::running_groups() const {
  return {running_.begin(), running_.end()};
}

std::optional<core::Ticket> GroupBook::ticket_of(core::GroupId id) const {
  const auto place = running_.find(id);
  if (place == running_.end()) return std::nullopt;
  return place->second;
}

std::size_t GroupBook::count(State state) const {
  return static_cast<std::size_t>(
      std::count_if(groups_.begin(), groups_.end(),
                    [state](const auto& entry) { return entry.second.state == state; }));
}

}  // namespace troupe::actors
