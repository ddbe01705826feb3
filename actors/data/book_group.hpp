// One group in the ticket book: its ticket, the delivered samples, and what the scorers added.
// Plain values that only the book changes.
#pragma once

#include "actors/data/reward_sets.hpp"
#include "actors/data/sample_extras.hpp"
#include "runtime/experience/group.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors {

using experience::GroupState;

// The cause of a missing score that the formula does not read for the group's row.
inline constexpr const char* kNotAsked = "not asked: the formula does not read it for this row";

// The rewards' results for one sample.
struct SampleScores {
  std::vector<std::optional<double>> components;  // by member of the group's reward set
  // By member: its scores of the sample's steps, at their last tokens; empty lists for those that
  // score the sample as a whole.
  std::vector<std::vector<experience::StepReward>> steps;
  std::string missing_cause;  // why there is no score; names the reward
  SampleExtras extras;        // what the rewards report beside the score
};

// Why a group failed.
enum class FailureKind {
  kUnscored,    // too few of its samples have a score
  kReward,      // a reward answered with an error
  kRewardGone,  // a reward stayed away for too long
  kRewardLost,  // a reward was lost, or detached while it was absent
  kReference,   // the reference model answered with an error, or stayed away
  kFiltered,    // its scores teach nothing: nothing went wrong
  kTooLong,     // it is longer than a group may be
  kSetAside,    // its ticket failed at every generator that tried it
  kTeacher,     // its teacher answered with an error, or stayed away
};
inline constexpr std::array<std::string_view, 9> kFailureKinds = {
    "unscored", "reward_error", "reward_gone", "reward_lost", "reference",
    "filtered", "too_long",     "set_aside",   "teacher"};

// The frozen models that give log-probs of a group's tokens.
enum class FrozenModel : std::uint8_t { kReference, kTeacher };

// Those that a run has.
struct FrozenModels {
  FrozenModels(bool with_reference = false, bool with_teacher = false)
      : reference(with_reference), teacher(with_teacher) {}
  bool reference, teacher;
};

// The range of mean scores of groups that are worth learning from; both ends are excluded.
struct MeanRange {
  double low = 0, high = 1;
  bool holds(double mean) const { return low < mean && mean < high; }
};

// Which groups are worth learning from: those whose episodes differ in what they are worth (by more
// than rounding), or, with a range, those whose mean score is inside it.
struct GroupFilter {
  std::optional<MeanRange> range{};
};

// Why a valid delivery was not taken.
enum class DuplicateKind {
  kRepeated,  // the ticket has its samples
  kReplaced,  // the slot was issued again
  kFailed,    // the group failed before its samples came
  kClosed,    // the update is committed, or was never open
};
inline constexpr std::array<std::string_view, 4> kDuplicateKinds = {"repeated", "replaced",
                                                                    "failed", "closed"};

// A sample that was dropped from its group because it has no score.
struct Unscored {
  std::size_t sample = 0;  // its place in the delivery
  std::string cause;
};

// The part of a group that a checkpoint keeps.
struct SavedTicket {
  experience::Ticket ticket;
  std::uint64_t prompt = 0;             // position in the prompt stream
  std::int32_t wanted = 0;              // samples of a whole group
  std::vector<std::uint64_t> replaced;  // prompt positions of the slot's earlier attempts
  friend bool operator==(const SavedTicket&, const SavedTicket&) = default;
};

struct BookGroup : SavedTicket {
  BookGroup() = default;
  explicit BookGroup(SavedTicket saved) : SavedTicket(std::move(saved)) {}

  core::Version version_min = 0;
  RewardSetPtr rewards;
  GroupState state = GroupState::kIssued;
  std::vector<experience::Trajectory> samples;
  std::vector<std::int32_t> begins_with;  // what all rows do; empty: the prompt of the dataset
  std::vector<SampleScores> scores;       // one per sample
  std::vector<bool> scored;               // by member of `rewards`
  std::string row;  // a JSON object: the columns of the prompt's row that the set's formula reads
  bool referenced = false;         // has the reference's log-probs
  bool taught = false;             // has the teacher's
  bool restored = false;           // loaded from a checkpoint and not issued again since
  std::string cause;               // of kFailed
  bool filtered = false;           // failed only because its scores teach nothing
  std::vector<Unscored> unscored;  // known when all rewards have answered
  std::uint32_t missing = 0;       // their number, with the slot's earlier attempts
};

}  // namespace troupe::actors
