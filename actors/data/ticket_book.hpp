// The ticket book, the data role's state: for each open ticket its prompt, the results that arrived
// and those that are missing. A pure state machine: no clock, no threads, no messages, so the same
// events give the same book. Owned by the data role, used on its strand.
//
//   issued -> generated -> (scores of each reward, reference log-probs) -> ready -> committed
//      \--------\-> failed
//   The slot of a failed group, or of one that nobody samples any more, is issued again: a new
//   attempt with another prompt and the reward set in force then.
//
// Bound: the groups of the updates that are open at once.
#pragma once

#include "actors/data/book_events.hpp"
#include "actors/data/book_groups.hpp"
#include "actors/data/group_filter.hpp"
#include "actors/data/prompt_positions.hpp"
#include "actors/data/reward_sets.hpp"
#include "runtime/core/result.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors::data {

// Counts since the book was made; never reset.
struct BookCounts {
  std::uint64_t put_tokens = 0;       // of deliveries that were taken
  std::uint64_t cut_groups = 0;       // taken with fewer samples than asked for
  std::uint64_t dropped_samples = 0;  // because they had no score
  std::uint64_t stale_refused = 0;    // deliveries with older weights than the ticket allows
  std::array<std::uint64_t, kFailureKinds.size()> failed{};        // groups, by FailureKind
  std::array<std::uint64_t, kDuplicateKinds.size()> duplicates{};  // deliveries, by DuplicateKind
  std::uint64_t failed_groups() const;
};

class TicketBook : public BookGroups {
 public:
  // `samples`: size of a group; `needed`: a group is ready only with their log-probs. `filter`: a
  // group that it does not keep fails as filtered.
  TicketBook(std::int32_t samples,
             FrozenModels needed,
             std::optional<GroupFilter> filter = std::nullopt)
      : samples_(samples), needed_(needed), filter_(filter) {}
  // A book without groups that is like this one.
  TicketBook empty() const { return {samples_, needed_, filter_}; }

  struct Order {
    std::uint64_t update = 0;
    std::uint32_t groups = 0;
    std::int32_t samples = 0;  // 0: the book's group size
    core::Version version_min = 0;
  };
  // The tickets of an update, slots 0..groups-1; prompts are taken from the stream in slot order,
  // sets from `rewards`. An update that is open has its current tickets (a repeated request).
  using SetOfSlot = std::function<RewardSetPtr(std::uint32_t slot)>;
  std::vector<experience::Ticket> issue(const Order& order, const SetOfSlot& rewards);
  std::vector<experience::Ticket> issue(const Order& order, const RewardSetPtr& rewards) {
    return issue(order, [&rewards](std::uint32_t) { return rewards; });
  }
  // A new ticket, with another prompt, for the slot of a group that failed or has no samples yet.
  // For a ticket that was replaced it gives the replacement. Any other ticket: kInvalidArgument.
  core::Result<experience::Ticket> reissue(const experience::Ticket& ticket,
                                           const RewardSetPtr& rewards);
  core::Result<void> may_reissue(const experience::Ticket& ticket) const;  // the same error

  // Takes the samples of a group, whose score is 0 where the set has no reward; false when they
  // came before, or too late for their slot (counted as a duplicate). `cut`: two episodes are
  // enough. `prompt`: what their rows begin with, if not the dataset's prompt. Errors, kData,
  // after which the group still waits: a wrong number of episodes; a token of weights older than
  // the ticket's version_min.
  core::Result<bool> put_samples(const experience::Ticket& ticket,
                                 std::vector<experience::Trajectory> samples,
                                 bool cut,
                                 std::vector<std::int32_t> prompt = {});
  // Takes the scores of one member of the group's reward set, one entry per sample (`extras`:
  // empty, or one each; `row`: the columns that the set's formula reads). When all members have
  // answered, a sample's score is the formula of theirs; a sample without one is dropped, and a
  // group left with fewer than two samples (or none, for groups of one) fails. `steps`: empty, or
  // for each sample the scores of its steps at their tokens; a member that gives them, and that the
  // formula does not name, adds them to the sample's steps by its weight in place of its score.
  // False: the group does not wait for this member.
  bool put_scores(GroupScored given);
  // One list per sample, one log-prob per token. False: they do not fit, or are not wanted.
  bool put_logprobs(FrozenModel by,
                    const experience::Ticket& ticket,
                    std::vector<std::vector<float>> logprobs);
  // False when the group has failed or is ready already.
  bool fail(const experience::Ticket& ticket, FailureKind kind, std::string cause);

  // The reward is lost: fails the groups that still wait for it and have a set older than `set`.
  void lose(const std::string& reward, std::uint64_t set);

  // Forgets the update's groups; does nothing the second time. Error: kInvalidArgument unless every
  // group is ready or, with `partly`, has failed.
  core::Result<void> commit(std::uint64_t update, bool partly = false);
  // True for one of the newest kCommitted_max committed updates: it gets no tickets again.
  bool committed(std::uint64_t update) const { return committed_.contains(update); }

  // Takes over the tickets that were open when a checkpoint was saved, in state issued. Error
  // kInvalidArgument: other groups are open already.
  core::Result<void> restore(PromptPositions prompts, std::vector<BookGroup> open);

  // Whoever keeps a log hears of each event, after `listener` is set; it outlives the book.
  void when_changed(BookListener* listener) { listener_ = listener; }
  // The set of that number; null: unknown, so records that need it are left out.
  using SetOf = std::function<RewardSetPtr(std::uint64_t number)>;
  // Opens the tickets of an earlier life, in state issued.
  void reopen(const std::vector<TicketIssued>& issued, const SetOf& set_of);
  // Makes the update's groups what these events of an earlier life made them. The listener, who has
  // them, does not hear of them.
  void replay(std::uint64_t update, std::vector<BookEvent> events, const SetOf& set_of);

  // What is broken, or "": a group has what its state says, and has left the book once its update
  // is committed.
  std::string check_invariants() const;

  const PromptPositions& prompts() const noexcept { return prompts_; }
  // The next ticket takes the first prompt again.
  void begin_prompts_again() { prompts_ = PromptPositions(); }
  // The positions before this one are given to no ticket.
  void begin_prompts_at(std::uint64_t position) {
    if (position > prompts_.next()) prompts_ = PromptPositions(position, prompts_.ahead());
  }
  const BookCounts& counts() const noexcept { return counts_; }

 private:
  void settle(BookGroup& group);
  void fail_group(BookGroup& group, FailureKind kind, std::string cause);
  void place(const TicketIssued& issued, const SetOf& set_of);
  void apply(BookEvent event, const SetOf& set_of);
  void tell(const BookEvent& event) {
    if (listener_ != nullptr) listener_->on_event(event);
  }
  void tell_issued(const BookGroup& group) {
    tell(TicketIssued{group, group.version_min, group.rewards->number});
  }

  std::int32_t samples_;
  FrozenModels needed_;
  std::optional<GroupFilter> filter_;
  PromptPositions prompts_;
  BookCounts counts_;
  std::set<std::uint64_t> committed_;  // the newest kCommitted_max
  BookListener* listener_ = nullptr;
};

}  // namespace troupe::actors::data
