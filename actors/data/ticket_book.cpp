// Transitions of the ticket book.
#include "actors/data/ticket_book.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors {

std::vector<core::Ticket> TicketBook::issue(std::uint64_t update, std::uint32_t groups,
                                            std::int32_t samples) {
  std::vector<core::Ticket> tickets;
  for (std::uint32_t slot = 0; slot < groups; ++slot) {
    auto [place, added] = groups_.try_emplace(Slot{update, slot});
    if (added) {
      place->second.ticket = {update, slot, 0};
      place->second.prompt = next_prompt_++;
      place->second.wanted = samples > 0 ? samples : samples_;
    }
    tickets.push_back(place->second.ticket);
  }
  return tickets;
}

core::Result<core::Ticket> TicketBook::reissue(const core::Ticket& ticket) {
  BookGroup* group = current(ticket);
  if (group == nullptr || group->state != GroupState::kFailed) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "slot " + std::to_string(ticket.slot) + " of update " +
                          std::to_string(ticket.update) + " has not failed");
  }
  BookGroup fresh;
  fresh.ticket = {ticket.update, ticket.slot, ticket.attempt + 1};
  fresh.prompt = next_prompt_++;
  fresh.wanted = group->wanted;
  *group = std::move(fresh);
  return group->ticket;
}

bool TicketBook::put_samples(const core::Ticket& ticket, std::vector<BookSample> samples) {
  BookGroup* group = current(ticket);
  if (group == nullptr || group->state != GroupState::kIssued) return false;
  if (static_cast<std::int32_t>(samples.size()) != group->wanted) return false;
  group->samples = std::move(samples);
  group->state = GroupState::kGenerated;
  return true;
}

bool TicketBook::put_scores(const core::Ticket& ticket,
                            const std::vector<std::optional<double>>& scores,
                            const std::vector<std::string>& causes) {
  BookGroup* group = current(ticket);
  if (group == nullptr || group->state != GroupState::kGenerated || group->scored) return false;
  if (scores.size() != group->samples.size()) return false;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    BookSample& sample = group->samples[i];
    if (scores[i] && std::isfinite(*scores[i])) {
      sample.score = scores[i];
    } else {
      sample.missing_cause = i < causes.size() && !causes[i].empty() ? causes[i] : "no score";
    }
  }
  group->scored = true;
  settle(*group);
  return true;
}

bool TicketBook::put_reference(const core::Ticket& ticket,
                               std::vector<std::vector<float>> logprobs) {
  BookGroup* group = current(ticket);
  if (group == nullptr || group->state != GroupState::kGenerated || group->referenced) return false;
  if (logprobs.size() != group->samples.size()) return false;
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    if (logprobs[i].size() != group->samples[i].tokens.size()) return false;
  }
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    group->samples[i].reference = std::move(logprobs[i]);
  }
  group->referenced = true;
  settle(*group);
  return true;
}

bool TicketBook::fail(const core::Ticket& ticket, std::string cause) {
  BookGroup* group = current(ticket);
  if (group == nullptr || group->state == GroupState::kReady ||
      group->state == GroupState::kFailed) {
    return false;
  }
  group->state = GroupState::kFailed;
  group->cause = std::move(cause);
  ++failed_groups_;
  return true;
}

void TicketBook::settle(BookGroup& group) {
  if (!group.scored || (needs_reference_ && !group.referenced)) return;
  const std::size_t needed = group.wanted >= 2 ? 2 : 1;
  const auto kept = static_cast<std::size_t>(
      std::count_if(group.samples.begin(), group.samples.end(),
                    [](const BookSample& sample) { return sample.score.has_value(); }));
  dropped_samples_ += group.samples.size() - kept;
  if (kept < needed) {
    const auto first = std::find_if(group.samples.begin(), group.samples.end(),
                                    [](const BookSample& s) { return !s.score.has_value(); });
    group.state = GroupState::kFailed;
    group.cause = "too few of its samples could be scored: " + first->missing_cause;
    ++failed_groups_;
    return;
  }
  std::erase_if(group.samples, [](const BookSample& s) { return !s.score.has_value(); });
  group.state = GroupState::kReady;
}

BookGroup* TicketBook::current(const core::Ticket& ticket) {
  const auto place = groups_.find({ticket.update, ticket.slot});
  if (place == groups_.end() || place->second.ticket != ticket) return nullptr;
  return &place->second;
}

const BookGroup* TicketBook::find(const core::Ticket& ticket) const {
  return const_cast<TicketBook*>(this)->current(ticket);
}

std::vector<const BookGroup*> TicketBook::groups_of(std::uint64_t update) const {
  std::vector<const BookGroup*> found;
  for (auto place = groups_.lower_bound({update, 0});
       place != groups_.end() && place->first.first == update; ++place) {
    found.push_back(&place->second);
  }
  return found;
}

bool TicketBook::settled(std::uint64_t update) const {
  const auto groups = groups_of(update);
  return std::all_of(groups.begin(), groups.end(), [](const BookGroup* group) {
    return group->state == GroupState::kReady || group->state == GroupState::kFailed;
  });
}

bool TicketBook::ready(std::uint64_t update) const {
  const auto groups = groups_of(update);
  return !groups.empty() && std::all_of(groups.begin(), groups.end(), [](const BookGroup* group) {
    return group->state == GroupState::kReady;
  });
}

core::Result<void> TicketBook::commit(std::uint64_t update) {
  if (!ready(update)) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "update " + std::to_string(update) + " is not ready to be committed");
  }
  groups_.erase(groups_.lower_bound({update, 0}), groups_.lower_bound({update + 1, 0}));
  return {};
}

}  // namespace troupe::actors
