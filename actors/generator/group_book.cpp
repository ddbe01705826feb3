#include "actors/generator/group_book.hpp"

#include "actors/protocol/call_values.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/find_value.hpp"

#include <algorithm>

namespace troupe::actors::generator {
namespace {

engine::GroupRequest request_of(core::GroupId id,
                                const PromptTask& task,
                                const SamplingSpec& sampling) {
  engine::GroupRequest request;
  request.id = id;
  request.prompt = task.tokens;
  request.samples = task.samples;
  request.seed = task.seed;
  request.sampling = engine_sampling(call_sampling(sampling));
  request.sampling.kept_mass = false;
  return request;
}

experience::Trajectory trajectory_of(Completed drawn) {
  experience::Trajectory result;
  result.tokens = std::move(drawn.tokens);
  result.behaviour = std::move(drawn.behaviour);
  result.versions = std::move(drawn.versions);
  result.facts = std::move(drawn.facts);
  result.finish = drawn.finish;
  return result;
}

}  // namespace

bool GroupBook::Before::operator()(const experience::Ticket& a, const experience::Ticket& b) const {
  if (a.kind() != b.kind()) return a.kind() == experience::TicketKind::kEvaluation;
  return a < b;
}

void GroupBook::ask(const experience::Ticket& ticket,
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

std::vector<experience::Ticket> GroupBook::take_asked(std::size_t count_max) {
  std::vector<experience::Ticket> tickets;
  for (auto& [ticket, group] : groups_) {
    if (tickets.size() == count_max) break;
    if (group.state != State::kAsked) continue;
    group.state = State::kFetching;
    tickets.push_back(ticket);
  }
  return tickets;
}

void GroupBook::put_prompt(PromptTask task) {
  Group* const group = core::find_value(groups_, task.ticket);
  if (group == nullptr || group->state != State::kFetching) return;
  group->task = std::move(task);
  group->state = State::kHeld;
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

PutGroup GroupBook::leave(core::GroupId id, bool cut) {
  const experience::Ticket ticket = running_.at(id);
  running_.erase(id);
  Group& group = groups_.at(ticket);
  group.state = State::kLeaving;
  std::sort(group.samples.begin(), group.samples.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  PutGroup put{ticket, {}, cut};
  for (engine::Sample& sample : group.samples)
    put.samples.push_back(trajectory_of(completed_of(std::move(sample))));
  return put;
}

std::optional<PutGroup> GroupBook::put_sample(engine::Sample sample) {
  const auto ticket = ticket_of(sample.group);
  if (!ticket) return std::nullopt;
  Group& group = groups_.at(*ticket);
  const core::GroupId id = sample.group;
  group.samples.push_back(std::move(sample));
  if (static_cast<std::int32_t>(group.samples.size()) < group.task.samples) return std::nullopt;
  return leave(id, false);
}

std::vector<core::GroupId> GroupBook::cut(const std::vector<experience::Ticket>& tickets) {
  std::vector<core::GroupId> aborts;
  for (const experience::Ticket& ticket : tickets) {
    Group* const group = core::find_value(groups_, ticket);
    if (group == nullptr || group->state == State::kLeaving) continue;
    if (group->state != State::kRunning) {
      retire(ticket);
      continue;
    }
    const auto entry = std::find_if(running_.begin(), running_.end(),
                                    [&ticket](const auto& one) { return one.second == ticket; });
    aborts.push_back(entry->first);
  }
  return aborts;
}

void GroupBook::retire(const experience::Ticket& ticket) {
  end(ticket, nullptr,
      core::Error{core::ErrorCode::kDeadline, "a straggler was cut with nothing to deliver"});
}

std::optional<PutGroup> GroupBook::aborted(core::GroupId id) {
  if (!running_.contains(id)) return std::nullopt;
  PutGroup delivered = leave(id, true);
  if (delivered.samples.size() >= 2) return delivered;
  retire(delivered.ticket);
  return std::nullopt;
}

void GroupBook::end(const experience::Ticket& ticket,
                    const PutGroup* delivered,
                    const std::optional<core::Error>& error) {
  const auto node = groups_.extract(ticket);
  if (node.empty()) return;
  const Group& group = node.mapped();
  std::erase_if(running_, [&](const auto& one) { return one.second == node.key(); });
  std::uint64_t tokens = 0, samples = 0;
  if (delivered != nullptr) {
    samples = delivered->samples.size();
    for (const auto& sample : delivered->samples)
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

std::vector<std::pair<core::GroupId, experience::Ticket>> GroupBook::running_groups() const {
  return {running_.begin(), running_.end()};
}

std::optional<experience::Ticket> GroupBook::ticket_of(core::GroupId id) const {
  const experience::Ticket* const ticket = core::find_value(running_, id);
  return ticket == nullptr ? std::nullopt : std::optional(*ticket);
}

std::size_t GroupBook::count(State state) const {
  return static_cast<std::size_t>(
      std::count_if(groups_.begin(), groups_.end(),
                    [state](const auto& entry) { return entry.second.state == state; }));
}

}  // namespace troupe::actors::generator
