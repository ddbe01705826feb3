// The data role's memory: which ticket stands for which prompt, what has come in for it, and what it
// still waits for. A pure state machine: no clock, no threads, no messages, so the same events give
// the same book. Owned by the data role, used on its strand alone.
//
//   issued -> generated -> (scores and reference log-probs in any order) -> ready -> committed
//                \-> failed: the slot is issued again with another prompt
//
// Bounded by the groups of the updates that may be open at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"

namespace troupe::actors {

// One sample as the generator delivered it, then with what the scorers added.
struct BookSample {
  std::vector<std::int32_t> tokens;
  std::vector<float> behaviour;  // log-prob of each token when it was sampled
  std::vector<core::Version> versions;
  std::vector<float> reference;  // empty until scored, or for good without a reference model
  std::string text;
  std::string finish;  // "eos", "stop", "length"
  std::optional<double> score;
  std::string missing_cause;  // why there is no score
};

enum class GroupState { kIssued, kGenerated, kReady, kFailed };

struct BookGroup {
  core::Ticket ticket;
  std::uint64_t prompt = 0;  // position in the prompt stream
  std::int32_t wanted = 0;   // samples of a whole group
  GroupState state = GroupState::kIssued;
  std::vector<BookSample> samples;
  bool scored = false;
  bool referenced = false;
  std::string cause;  // of kFailed
};

class TicketBook {
 public:
  // `samples`: size of a group; `needs_reference`: a group is ready only with reference log-probs.
  TicketBook(std::int32_t samples, bool needs_reference)
      : samples_(samples), needs_reference_(needs_reference) {}

  // The tickets of an update, slots 0..groups-1; prompts are taken from the stream in slot order.
  // Asking again for an update that is open gives its current tickets (a repeated request).
  // `samples` other than 0 replaces the book's group size for these groups.
  std::vector<core::Ticket> issue(std::uint64_t update, std::uint32_t groups,
                                  std::int32_t samples = 0);
  // Another prompt for the slot of a failed group. Error: kInvalidArgument when it has not failed.
  core::Result<core::Ticket> reissue(const core::Ticket& ticket);

  // True when taken; false when the ticket is unknown, replaced or already has its samples (a
  // delivery may come twice and counts once).
  bool put_samples(const core::Ticket& ticket, std::vector<BookSample> samples);
  // One entry per sample, in order. A sample without a score is dropped from the group; a group left
  // with fewer than two samples (or none, for groups of one) fails.
  bool put_scores(const core::Ticket& ticket, const std::vector<std::optional<double>>& scores,
                  const std::vector<std::string>& causes);
  bool put_reference(const core::Ticket& ticket, std::vector<std::vector<float>> logprobs);
  bool fail(const core::Ticket& ticket, std::string cause);

  const BookGroup* find(const core::Ticket& ticket) const;
  // The update's groups by slot.
  std::vector<const BookGroup*> groups_of(std::uint64_t update) const;
  bool settled(std::uint64_t update) const;  // every group ready or failed
  bool ready(std::uint64_t update) const;    // every group ready

  // Forgets the update. Error: kInvalidArgument unless every group is ready.
  core::Result<void> commit(std::uint64_t update);

  std::uint64_t next_prompt() const noexcept { return next_prompt_; }
  void set_next_prompt(std::uint64_t position) noexcept { next_prompt_ = position; }
  std::uint64_t dropped_samples() const noexcept { return dropped_samples_; }
  std::uint64_t failed_groups() const noexcept { return failed_groups_; }
  std::size_t open_groups() const noexcept { return groups_.size(); }

 private:
  using Slot = std::pair<std::uint64_t, std::uint32_t>;
  BookGroup* current(const core::Ticket& ticket);
  void settle(BookGroup& group);

  std::int32_t samples_;
  bool needs_reference_;
  std::uint64_t next_prompt_ = 0;
  std::uint64_t dropped_samples_ = 0;
  std::uint64_t failed_groups_ = 0;
  std::map<Slot, BookGroup> groups_;
};

}  // namespace troupe::actors
