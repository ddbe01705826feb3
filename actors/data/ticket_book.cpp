#include "actors/data/ticket_book.hpp"

#include "actors/data/sample_scores.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/experience/episodes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>
#include <variant>

namespace troupe::actors {
namespace {

using core::ErrorCode;

// How many committed updates the book remembers. A repeated request comes within a few updates.
constexpr std::size_t kCommitted_max = 64;

BookGroup fresh_group(SavedTicket ticket, core::Version version_min, const RewardSetPtr& rewards) {
  BookGroup group(std::move(ticket));
  group.version_min = version_min;
  group.rewards = rewards;
  group.scored.assign(rewards->members.size(), false);
  return group;
}

bool open(const BookGroup& group) {
  return group.state == GroupState::kIssued || group.state == GroupState::kGenerated;
}

bool waits(const BookGroup& group, const std::string& reward) {
  const auto member = group.rewards->member(reward);
  return open(group) && member && !group.scored[*member];
}

bool forked(const std::vector<experience::Trajectory>& samples) {
  return std::any_of(samples.begin(), samples.end(),
                     [](const auto& sample) { return sample.episode != 0; });
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// A single sample cannot differ from another.
bool keeps(const GroupFilter& filter, const ScoredEpisodes& scored) {
  if (filter.range) return filter.range->holds(scored.mean_score);
  return scored.differ || scored.count < 2;
}

std::string why_filtered(const GroupFilter& filter, const ScoredEpisodes& scored) {
  const std::string mean = number_text(scored.mean_score);
  if (!filter.range) return "all of its samples have the score " + mean;
  return "its mean score of " + mean + " is not between " + number_text(filter.range->low) +
         " and " + number_text(filter.range->high) + " (--algo.dynamic_filtering_range)";
}

}  // namespace

std::uint64_t BookCounts::failed_groups() const {
  return std::accumulate(failed.begin(), failed.end(), std::uint64_t{0});
}

std::vector<experience::Ticket> TicketBook::issue(const Order& order, const SetOfSlot& rewards) {
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
  const BookGroup* const group = core::find_value(groups_, {ticket.update, ticket.slot});
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
  TROUPE_TRY(may_reissue(ticket));
  BookGroup& group = groups_.find({ticket.update, ticket.slot})->second;
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

// True for a delivery that no group waits for; counts it.
bool TicketBook::drop_delivery(const experience::Ticket& ticket) {
  DuplicateKind kind = DuplicateKind::kClosed;
  if (const BookGroup* group = core::find_value(groups_, {ticket.update, ticket.slot})) {
    // A ticket of an earlier life counts once it is issued in this one.
    const bool waits = group->state == GroupState::kIssued && !group->restored;
    if (group->ticket == ticket && waits) return false;
    if (group->ticket.attempt > ticket.attempt) kind = DuplicateKind::kReplaced;
    if (group->ticket == ticket) {
      kind = group->samples.empty() ? DuplicateKind::kFailed : DuplicateKind::kRepeated;
    }
  }
  ++counts_.duplicates[static_cast<std::size_t>(kind)];
  return true;
}

core::Result<void> TicketBook::check_delivery(const BookGroup& group,
                                              const std::vector<experience::Trajectory>& samples,
                                              bool cut) {
  const auto count = static_cast<std::int32_t>(experience::episodes_of(samples).size());
  const std::int32_t least = cut ? std::min(2, group.wanted) : group.wanted;
  if (count < least || count > group.wanted) {
    return core::fail(ErrorCode::kData, name_of(group.ticket) + ": " + std::to_string(count) +
                                            (forked(samples) ? " episodes" : " samples") +
                                            " came for a group of " + std::to_string(group.wanted));
  }
  for (const experience::Trajectory& sample : samples) {
    const core::Version oldest = sample.versions.oldest();
    if (oldest >= group.version_min) continue;
    ++counts_.stale_refused;
    return core::fail(ErrorCode::kData, name_of(group.ticket) +
                                            ": a token was drawn with version " +
                                            std::to_string(oldest) +
                                            " of the weights, but its ticket allows none before " +
                                            std::to_string(group.version_min));
  }
  return {};
}

core::Result<bool> TicketBook::put_samples(const experience::Ticket& ticket,
                                           std::vector<experience::Trajectory> samples,
                                           bool cut,
                                           std::vector<std::int32_t> prompt) {
  if (drop_delivery(ticket)) return false;
  BookGroup& group = *current(ticket);
  TROUPE_TRY(check_delivery(group, samples, cut));
  for (const experience::Trajectory& sample : samples)
    counts_.put_tokens += sample.tokens.size();
  group.scores.assign(samples.size(), {});
  for (SampleScores& scores : group.scores) {
    scores.components.assign(group.rewards->members.size(), std::nullopt);
    scores.steps.assign(group.rewards->members.size(), {});
  }
  const std::size_t episodes = experience::episodes_of(samples).size();
  if (static_cast<std::int32_t>(episodes) < group.wanted) ++counts_.cut_groups;
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

bool TicketBook::put_scores(const experience::Ticket& ticket,
                            std::size_t member,
                            const std::vector<std::optional<double>>& scores,
                            const std::vector<std::string>& causes,
                            const std::vector<std::string>& extras,
                            const std::string& row,
                            const std::vector<std::vector<experience::StepReward>>& steps) {
  if (!waits_for(ticket, member)) return false;
  BookGroup& group = *current(ticket);
  if (group.state != GroupState::kGenerated || scores.size() != group.samples.size()) return false;
  if (!fit_samples(steps, group.samples)) return false;
  const BookEvent event = GroupScored{ticket, member, scores, causes, extras, row, steps};
  tell(event);
  add_scores(group, std::get<GroupScored>(event));
  settle(group);
  return true;
}

bool TicketBook::put_logprobs(FrozenModel by,
                              const experience::Ticket& ticket,
                              std::vector<std::vector<float>> logprobs) {
  BookGroup* group = current(ticket);
  if (group == nullptr || group->state != GroupState::kGenerated) return false;
  const bool teacher = by == FrozenModel::kTeacher;
  bool& there = teacher ? group->taught : group->referenced;
  if (there) return false;
  if (logprobs.size() != group->samples.size()) return false;
  for (std::size_t i = 0; i < logprobs.size(); ++i) {
    if (logprobs[i].size() != group->samples[i].tokens.size()) return false;
  }
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
  BookGroup* group = current(ticket);
  if (group == nullptr || !open(*group)) return false;
  fail_group(*group, kind, std::move(cause));
  return true;
}

void TicketBook::settle(BookGroup& group) {
  if (std::count(group.scored.begin(), group.scored.end(), false) > 0) return;
  const std::size_t needed = group.wanted >= 2 ? 2 : 1;
  const ScoredEpisodes scored = scored_episodes(group);
  const std::size_t kept = scored.count;
  // A filtered group need not wait for frozen models.
  if (filter_ && kept >= needed && !keeps(*filter_, scored)) {
    group.filtered = true;
    fail_group(group, FailureKind::kFiltered, why_filtered(*filter_, scored));
    return;
  }
  if (needed_.reference && !group.referenced) return;
  if (needed_.teacher && !group.taught) return;
  if (kept < needed) {
    counts_.dropped_samples += group.unscored.size();
    fail_group(group, FailureKind::kUnscored,
               "too few of its samples could be scored: " + group.unscored.front().cause);
    return;
  }
  counts_.dropped_samples += keep_scored(group);
  group.state = GroupState::kReady;
}

void TicketBook::lose(const std::string& reward, std::uint64_t set) {
  for (auto& [slot, group] : groups_) {
    if (group.rewards->number >= set || !waits(group, reward)) continue;
    fail_group(group, FailureKind::kRewardLost, "reward " + reward + " was lost");
  }
}

bool TicketBook::waits_for(const std::string& reward) const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [&](const auto& entry) { return waits(entry.second, reward); });
}

bool TicketBook::waits_for(const experience::Ticket& ticket, std::size_t member) const {
  const BookGroup* group = find(ticket);
  return group != nullptr && open(*group) && member < group->scored.size() &&
         !group->scored[member];
}

BookGroup* TicketBook::current(const experience::Ticket& ticket) {
  BookGroup* const group = core::find_value(groups_, {ticket.update, ticket.slot});
  return group == nullptr || group->ticket != ticket ? nullptr : group;
}

const BookGroup* TicketBook::find(const experience::Ticket& ticket) const {
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

std::vector<const BookGroup*> TicketBook::groups() const {
  std::vector<const BookGroup*> all;
  for (const auto& [slot, group] : groups_)
    all.push_back(&group);
  return all;
}

bool TicketBook::any_failed(std::uint64_t update) const {
  const auto groups = groups_of(update);
  return std::any_of(groups.begin(), groups.end(),
                     [](const BookGroup* group) { return group->state == GroupState::kFailed; });
}

bool TicketBook::ready(std::uint64_t update) const {
  return settled(update) && !any_failed(update);
}

bool TicketBook::settled(std::uint64_t update) const {
  const auto groups = groups_of(update);
  return !groups.empty() && std::all_of(groups.begin(), groups.end(), [](const BookGroup* group) {
    return group->state == GroupState::kReady || group->state == GroupState::kFailed;
  });
}

std::uint64_t TicketBook::oldest_update() const noexcept {
  return groups_.empty() ? next_update_ : groups_.begin()->first.first;
}

core::Result<void> TicketBook::commit(std::uint64_t update, bool partly) {
  if (committed(update)) return {};
  if (partly ? !settled(update) : !ready(update)) {
    return core::fail(ErrorCode::kInvalidArgument,
                      "update " + std::to_string(update + 1) + " is not ready to be committed");
  }
  groups_.erase(groups_.lower_bound({update, 0}), groups_.lower_bound({update + 1, 0}));
  committed_.insert(update);
  if (committed_.size() > kCommitted_max) committed_.erase(committed_.begin());
  return {};
}

core::Result<void> TicketBook::restore(PromptPositions prompts, std::vector<BookGroup> open) {
  const bool idle = std::all_of(groups_.begin(), groups_.end(), [](const auto& entry) {
    return entry.second.restored && entry.second.state == GroupState::kIssued;
  });
  if (!idle) {
    return core::fail(ErrorCode::kInvalidArgument, "a state is loaded before tickets are issued");
  }
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
void TicketBook::place(const TicketIssued& issued, const RewardSetPtr& rewards) {
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
  for (const TicketIssued& one : issued) {
    if (const RewardSetPtr rewards = set_of(one.set)) place(one, rewards);
  }
}

void TicketBook::apply(BookEvent event, const SetOf& set_of) {
  if (const auto* const issued = std::get_if<TicketIssued>(&event)) {
    if (const RewardSetPtr rewards = set_of(issued->set)) place(*issued, rewards);
  } else if (auto* const taken = std::get_if<GroupTaken>(&event)) {
    BookGroup* const group = current(taken->ticket);
    if (group == nullptr || group->state != GroupState::kIssued) return;
    group->restored = false;
    const auto put =
        put_samples(taken->ticket, std::move(taken->samples), taken->cut, std::move(taken->prompt));
    if (!put) group->restored = true;
  } else if (auto* const scored = std::get_if<GroupScored>(&event)) {
    put_scores(scored->ticket, scored->member, scored->scores, scored->causes, scored->extras,
               scored->row, scored->steps);
  } else if (auto* const referenced = std::get_if<GroupReferenced>(&event)) {
    put_logprobs(referenced->by, referenced->ticket, std::move(referenced->logprobs));
  } else if (auto* const failed = std::get_if<GroupFailed>(&event)) {
    BookGroup* const group = current(failed->ticket);
    if (fail(failed->ticket, failed->kind, std::move(failed->cause))) group->restored = false;
  }
}

void TicketBook::replay(std::uint64_t update, std::vector<BookEvent> events, const SetOf& set_of) {
  BookListener* const listener = std::exchange(listener_, nullptr);
  const BookCounts counts = counts_;  // of this life
  groups_.erase(groups_.lower_bound({update, 0}), groups_.lower_bound({update + 1, 0}));
  for (BookEvent& event : events)
    apply(std::move(event), set_of);
  counts_ = counts;
  listener_ = listener;
}

}  // namespace troupe::actors
