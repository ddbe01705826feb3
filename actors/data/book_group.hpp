// One group in the ticket book: its ticket, the delivered samples, and what the scorers added.
// Plain values that only the book changes.
#pragma once

#include "actors/data/reward_sets.hpp"
#include "actors/data/sample_extras.hpp"
#include "runtime/core/result.hpp"
#include "runtime/experience/group.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors::data {

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
  SampleExtras extras;        // what the rewards report besides the score
};

// Why a group failed.
enum class FailureKind {
  kUnscored,    // too few of its samples have a score
  kReward,      // a reward answered with an error
  kRewardGone,  // a reward stayed away for too long
  kRewardLost,  // a reward was lost, or detached while it was absent
  kReference,   // the reference model answered with an error, or stayed away
  kFiltered,    // nothing went wrong, but its scores teach nothing
  kTooLong,     // it is longer than a group may be
  kSetAside,    // its ticket failed at every generator that tried it
  kTeacher,     // its teacher answered with an error, or stayed away
};
inline constexpr std::array<std::string_view, 9> kFailureKinds = {
    "unscored", "reward_error", "reward_gone", "reward_lost", "reference",
    "filtered", "too_long",     "set_aside",   "teacher"};

// The frozen models that give log-probs of a group's tokens.
enum class FrozenModel : std::uint8_t { kReference, kTeacher };

// The frozen models that a run has.
struct FrozenModels {
  FrozenModels(bool with_reference = false, bool with_teacher = false)
      : reference(with_reference), teacher(with_teacher) {}
  bool reference, teacher;
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

inline bool is_open(const BookGroup& group) {
  return group.state == GroupState::kIssued || group.state == GroupState::kGenerated;
}
// True while the group waits for scores of this reward.
bool waits(const BookGroup& group, const std::string& reward);

// Why a delivery for a ticket, in whose slot this group is (null: none), is not taken. None: the
// group waits for it.
std::optional<DuplicateKind> duplicate_kind(const BookGroup* group,
                                            const experience::Ticket& ticket);
// Whether these may be delivered for the group. Errors kData: other than the wanted number of
// episodes (`cut`: two are enough); a token of weights older than the group allows.
core::Result<void> check_count(const BookGroup& group,
                               const std::vector<experience::Trajectory>& samples,
                               bool cut);
core::Result<void> check_age(const BookGroup& group,
                             const std::vector<experience::Trajectory>& samples);

// Whether there is one log-prob for each token.
bool fit_tokens(const std::vector<std::vector<float>>& logprobs,
                const std::vector<experience::Trajectory>& samples);

// What the group lacks of what its state says; "": nothing.
std::string fault_of(const BookGroup& group, const FrozenModels& needed);

}  // namespace troupe::actors::data
