// A ticket: the right to sample one group for one slot of one update or evaluation. It is the unit
// of order in a run; prompts, seeds, the ledger and checkpoints refer to it by its numbers. Plain
// values.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace troupe::experience {

// What the samples of a ticket are for.
enum class TicketKind : std::uint8_t { kTraining, kEvaluation };

// Training updates are numbered from 0, evaluations from here on, so one number tells which it is.
// Never change it: seeds follow from these numbers, and the ledger holds them.
inline constexpr std::uint64_t kFirstEvaluation = std::uint64_t{1} << 63;

constexpr TicketKind kind_of(std::uint64_t update) {
  return update < kFirstEvaluation ? TicketKind::kTraining : TicketKind::kEvaluation;
}
constexpr bool is_evaluation(std::uint64_t update) {
  return kind_of(update) == TicketKind::kEvaluation;
}

// The number of an evaluation after `done` updates, and what it says.
constexpr std::uint64_t evaluation_after(std::uint64_t done, bool greedy) {
  return kFirstEvaluation + 2 * done + (greedy ? 1 : 0);
}
constexpr bool is_greedy(std::uint64_t evaluation) {
  return (evaluation & 1) != 0;
}
// The step that the groups belong to: updates done with this one, or when the evaluation is made.
constexpr std::uint64_t step_of(std::uint64_t update) {
  return is_evaluation(update) ? (update - kFirstEvaluation) / 2 : update + 1;
}

struct Ticket {
  std::uint64_t update = 0;   // number of the update or evaluation that the group is for
  std::uint32_t slot = 0;     // place of the group within it, from 0
  std::uint32_t attempt = 0;  // 0, then 1, 2, ... when the slot is issued again

  constexpr TicketKind kind() const { return kind_of(update); }
  friend auto operator<=>(const Ticket&, const Ticket&) = default;
};

// Names for messages, counted from 1: "update 3" or "evaluation 2"; "update 3, prompt 1".
std::string name_of_update(std::uint64_t update);
std::string name_of(const Ticket& ticket);

}  // namespace troupe::experience
