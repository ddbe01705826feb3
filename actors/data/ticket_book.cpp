#include "actors/data/ticket_book.hpp"

#include "actors/data/sample_scores.hpp"
#include "runtime/core/checked_change.hpp"
#include "runtime/experience/episodes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

namespace troupe::actors::data {
namespace {

// How many committed updates the book remembers. A repeated request comes within a few updates.
constexpr std::size_t kCommitted_max = 64;

BookGroup fresh_group(SavedTicket ticket, core::Version version_min, const RewardSetPtr& rewards) {
  BookGroup group(std::move(ticket));
  group.version_min = version_min;
  group.rewards = rewards;
  group.scored.assign(rewards->members.size(), false);
  return group;
}

}  // namespace

std::uint64_t BookCounts::failed_groups() const {
  return std::accumulate(failed.begin(), failed.end(), std::uint64_t{0});
}

std::vector<experience::Ticket> TicketBook::issue(const Order& order, const SetOfSlot& rewards) {
  const core::CheckedChange checked(*this);
  std::vector<experience::Ticket> tickets;
  const std::int32_t wanted = order.samples > 0 ? order.samples : samples_;
  for (std::uint32_t slot = 0; slot < order.groups; ++slot) {
    auto [place, added] = groups_.try_emplace(Slot{order.update, slot});
    BookGroup& group = place->second;
    const bool fresh = added || group.restored;
    if (added) {
      const experience::Ticket ticket{order.update, slot, 0};
      group = fresh_group({ticket, prompts_.take(), wanted, {}}, order.version_min, rewards(slot));
    } else if (group.restored) {
      group = fresh_group({group.ticket, group.prompt, wanted, std::move(group.replaced)},
                          order.version_min, rewards(slot));
    }
    tickets.push_back(group.ticket);
    if (fresh) tell_issued(group);
  }
  next_update_ = std::max(next_update_, order.update + 1);
  return tickets;
}

core::Result<void> TicketBook::may_reissue(const experience::Ticket& ticket) const {
  const BookGroup* const group = in_slot(ticket);
  if (group != nullptr && group->ticket.attempt == ticket.attempt + 1) return {};  // done before
  if (group != nullptr && group->ticket == ticket) {
    if (group->state == GroupState::kFailed || group->state == GroupState::kIssued) return {};
    return core::fail(ErrorCode::kInvalidArgument,
                      name_of(ticket) + " is not issued again: its group is " +
                          std::string(experience::state_name(group->state)));
  }
  return core::fail(ErrorCode::kInvalidArgument, name_of(ticket) + " is not open with attempt " +
                                                     std::to_string(ticket.attempt));
}

core::Result<experience::Ticket> TicketBook::reissue(const experience::Ticket& ticket,
                                                     const RewardSetPtr& rewards) {
  const core::CheckedChange checked(*this);
  TROUPE_TRY(may_reissue(ticket));
  BookGroup& group = *in_slot(ticket);
  if (group.ticket != ticket) return group.ticket;
  group.replaced.push_back(group.prompt);
  const experience::Ticket next{ticket.update, ticket.slot, ticket.attempt + 1};
  BookGroup fresh = fresh_group({next, prompts_.take(), group.wanted, std::move(group.replaced)},
                                group.version_min, rewards);
  fresh.restored = group.restored;  // then the next IssueTickets sets version_min and samples
  fresh.missing = group.missing;
  group = std::move(fresh);
  tell_issued(group);
  return next;
}

core::Result<bool> TicketBook::put_samples(const experience::Ticket& ticket,
                                           std::vector<experience::Trajectory> samples,
                                           bool cut,
                                           std::vector<std::int32_t> prompt) {
  const core::CheckedChange checked(*this);
  if (const auto kind = duplicate_kind(in_slot(ticket), ticket)) {
    ++counts_.duplicates[static_cast<std::size_t>(*kind)];
    return false;
  }
  BookGroup& group = *current(ticket);
  TROUPE_TRY(check_count(group, samples, cut));
  if (auto young = check_age(group, samples); !young) {
    ++counts_.stale_refused;
    return young.failure();
  }
  for (const experience::Trajectory& sample : samples)
    counts_.put_tokens += sample.tokens.size();
  SampleScores none;
  none.components.resize(group.rewards->members.size());
  none.steps.resize(group.rewards->members.size());
  group.scores.assign(samples.size(), none);
  if (std::cmp_less(experience::episodes_of(samples).size(), group.wanted)) ++counts_.cut_groups;
  BookEvent event = GroupTaken{ticket, std::move(samples), cut, std::move(prompt)};
  tell(event);
  auto& taken = std::get<GroupTaken>(event);
  group.samples = std::move(taken.samples);
  group.begins_with = std::move(taken.prompt);
  group.state = GroupState::kGenerated;
  if (!group.rewards->members.empty()) return true;
  for (experience::Trajectory& sample : group.samples)
    sample.score = 0;
  settle(group);
  return true;
}

bool TicketBook::put_scores(GroupScored given) {
  const core::CheckedChange checked(*this);
  if (!waits_for(given.ticket, given.member)) return false;
  BookGroup& group = *current(given.ticket);
  const bool fit =
      given.scores.size() == group.samples.size() && fit_samples(given.steps, group.samples);
  if (group.state != GroupState::kGenerated || !fit) return false;
  const BookEvent event = std::move(given);
  tell(event);
  add_scores(group, std::get<GroupScored>(event));
  settle(group);
  return true;
}

bool TicketBook::put_logprobs(FrozenModel by,
                              const experience::Ticket& ticket,
                              std::vector<std::vector<float>> logprobs) {
  const core::CheckedChange checked(*this);
  BookGroup* group = current(ticket);
  if (group == nullptr || group->state != GroupState::kGenerated) return false;
  const bool teacher = by == FrozenModel::kTeacher;
  bool& there = teacher ? group->taught : group->referenced;
  if (there || !fit_tokens(logprobs, group->samples)) return false;
  BookEvent event = GroupReferenced{ticket, std::move(logprobs), by};
  tell(event);
  auto& given = std::get<GroupReferenced>(event).logprobs;
  for (std::size_t i = 0; i < given.size(); ++i) {
    experience::Trajectory& sample = group->samples[i];
    (teacher ? sample.teacher : sample.reference) = std::move(given[i]);
  }
  there = true;
  settle(*group);
  return true;
}

void TicketBook::fail_group(BookGroup& group, FailureKind kind, std::string cause) {
  // Its scores show by themselves that a group is filtered, or cannot be scored.
  const bool shows = kind == FailureKind::kFiltered || kind == FailureKind::kUnscored;
  if (!shows) tell(GroupFailed{group.ticket, kind, cause});
  group.state = GroupState::kFailed;
  group.cause = std::move(cause);
  ++counts_.failed[static_cast<std::size_t>(kind)];
}

bool TicketBook::fail(const experience::Ticket& ticket, FailureKind kind, std::string cause) {
  const core::CheckedChange checked(*this);
  BookGroup* group = current(ticket);
  if (group == nullptr || !is_open(*group)) return false;
  fail_group(*group, kind, std::move(cause));
  return true;
}

void TicketBook::settle(BookGroup& group) {
  GroupOutcome outcome = outcome_of(group, needed_, filter_);
  if (outcome.waits) return;
  group.filtered = outcome.failure == FailureKind::kFiltered;
  if (outcome.failure == FailureKind::kUnscored) counts_.dropped_samples += group.unscored.size();
  if (outcome.failure) return fail_group(group, *outcome.failure, std::move(outcome.cause));
  counts_.dropped_samples += keep_scored(group);
  group.state = GroupState::kReady;
}

void TicketBook::lose(const std::string& reward, std::uint64_t set) {
  const core::CheckedChange checked(*this);
  for (auto& [slot, group] : groups_) {
    if (group.rewards->number >= set || !waits(group, reward)) continue;
    fail_group(group, FailureKind::kRewardLost, "reward " + reward + " was lost");
  }
}

std::string TicketBook::check_invariants() const {
  for (const auto& [slot, group] : groups_) {
    const auto& ticket = group.ticket;
    const std::string who = "the group of " + name_of(ticket) + " ";
    if (slot != Slot{ticket.update, ticket.slot}) return who + "is in another slot";
    if (committed(ticket.update)) return who + "is of an update that is committed";
    if (ticket.update >= next_update_) return who + "is of an update that has not begun";
    if (group.replaced.size() != ticket.attempt) return who + "has other attempts behind it";
    const std::string fault = fault_of(group, needed_);
    if (!fault.empty()) return who + fault;
  }
  return "";
}

core::Result<void> TicketBook::commit(std::uint64_t update, bool partly) {
  const core::CheckedChange checked(*this);
  if (committed(update)) return {};
  if (partly ? !settled(update) : !ready(update)) {
    return core::fail(ErrorCode::kInvalidArgument,
                      "update " + std::to_string(update + 1) + " is not ready to be committed");
  }
  forget(update);
  committed_.insert(update);
  if (committed_.size() > kCommitted_max) committed_.erase(committed_.begin());
  return {};
}

core::Result<void> TicketBook::restore(PromptPositions prompts, std::vector<BookGroup> open) {
  const core::CheckedChange checked(*this);
  const bool idle = std::all_of(groups_.begin(), groups_.end(), [](const auto& entry) {
    return entry.second.restored && entry.second.state == GroupState::kIssued;
  });
  if (!idle)
    return core::fail(ErrorCode::kInvalidArgument, "a state is loaded before tickets are issued");
  groups_.clear();
  prompts_ = std::move(prompts);
  for (BookGroup& saved : open) {
    const Slot slot{saved.ticket.update, saved.ticket.slot};
    saved.scored.assign(saved.rewards->members.size(), false);
    saved.restored = true;
    next_update_ = std::max(next_update_, slot.first + 1);
    groups_.insert_or_assign(slot, std::move(saved));
  }
  return {};
}

// Puts a ticket of an earlier life in its slot.
void TicketBook::place(const TicketIssued& issued, const SetOf& set_of) {
  const RewardSetPtr rewards = set_of(issued.set);
  if (!rewards) return;
  const SavedTicket& saved = issued.saved;
  const auto [place, added] = groups_.try_emplace(Slot{saved.ticket.update, saved.ticket.slot});
  BookGroup& group = place->second;
  // An event may be in a log twice.
  if (!added && group.ticket == saved.ticket && group.state != GroupState::kIssued) return;
  const std::uint32_t missing = added ? 0 : group.missing;
  group = fresh_group(saved, issued.version_min, rewards);
  group.missing = missing;
  group.restored = true;
  prompts_.use(saved.prompt);
  for (const std::uint64_t prompt : saved.replaced)
    prompts_.use(prompt);
  next_update_ = std::max(next_update_, saved.ticket.update + 1);
}

void TicketBook::reopen(const std::vector<TicketIssued>& issued, const SetOf& set_of) {
  const core::CheckedChange checked(*this);
  for (const TicketIssued& one : issued)
    place(one, set_of);
}

void TicketBook::apply(BookEvent event, const SetOf& set_of) {
  if (const auto* const issued = std::get_if<TicketIssued>(&event)) {
    place(*issued, set_of);
  } else if (auto* const taken = std::get_if<GroupTaken>(&event)) {
    BookGroup* const group = current(taken->ticket);
    if (group == nullptr || group->state != GroupState::kIssued) return;
    group->restored = false;
    const auto put =
        put_samples(taken->ticket, std::move(taken->samples), taken->cut, std::move(taken->prompt));
    if (!put) group->restored = true;
  } else if (auto* const scored = std::get_if<GroupScored>(&event)) {
    put_scores(std::move(*scored));
  } else if (auto* const referenced = std::get_if<GroupReferenced>(&event)) {
    put_logprobs(referenced->by, referenced->ticket, std::move(referenced->logprobs));
  } else if (auto* const failed = std::get_if<GroupFailed>(&event)) {
    BookGroup* const group = current(failed->ticket);
    if (fail(failed->ticket, failed->kind, std::move(failed->cause))) group->restored = false;
  }
}

void TicketBook::replay(std::uint64_t update, std::vector<BookEvent> events, const SetOf& set_of) {
  const core::CheckedChange checked(*this);
  BookListener* const listener = std::exchange(listener_, nullptr);
  const BookCounts counts = counts_;  // of this life
  forget(update);
  for (BookEvent& event : events)
    apply(std::move(event), set_of);
  counts_ = counts;
  listener_ = listener;
}

}  // namespace troupe::actors::data
