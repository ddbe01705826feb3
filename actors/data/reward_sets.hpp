// Records which rewards score the groups of which update. A reward set has a number and holds from
// an update on; a group gets a set with its ticket and keeps it. A set with a lost or removed
// reward is retired: no group gets it again. Pure; owned by the data role, used on its strand.
// Bounds: the changes since the oldest open update, and kRewardMembers_max rewards per set.
#pragma once

#include "actors/formula/reward_formula.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::data {

struct RewardSet {
  // `formula`: of the members' scores; "": their weighted sum.
  RewardSet(std::uint64_t number_,
            std::uint64_t from_update_,
            std::vector<RewardMember> members_,
            std::string formula_ = "");

  std::uint64_t number = 0;
  std::uint64_t from_update = 0;
  std::vector<RewardMember> members;
  std::string formula;
  core::Result<formula::RewardFormula> parsed;  // the formula; an error: no sample has a score

  // Index of the reward in `members`; none when it is not in the set.
  std::optional<std::size_t> member(const std::string& name) const;
  friend bool operator==(const RewardSet& a, const RewardSet& b) {
    return a.number == b.number && a.from_update == b.from_update && a.members == b.members &&
           a.formula == b.formula;
  }
};

using RewardSetPtr = std::shared_ptr<const RewardSet>;

// The rewards of the next `prompts` held-out prompts; without members, set 0 scores them.
struct HeldOutRewards {
  std::uint64_t prompts = 0;
  std::vector<RewardMember> members;
  std::string formula{};
};

class RewardSets {
 public:
  // `first` is set 0, which holds from the start and scores every held-out prompt that has no
  // rewards of its own in `held_out`. It may be empty where
  // a teacher teaches.
  explicit RewardSets(std::vector<RewardMember> first,
                      std::string formula = "",
                      const std::vector<HeldOutRewards>& held_out = {});

  // Adds the sets that a checkpoint saved, in their order. Retires each set with a reward that the
  // newest lacks. Errors: those of `add`.
  core::Result<void> restore(const std::vector<SetRewards>& earlier);
  // For a checkpoint: the sets kept here, without the first.
  std::vector<SetRewards> added() const;

  // Adds a set: groups of updates from `from_update` on get it, unless a newer one holds for them.
  // False when it was added before (a message may come twice). Retires sets that need a lost
  // reward. Errors, kInvalidArgument: no member (unless the first set has none), a name twice, a
  // weight that is not finite, a lost member, a number that is not the newest or belongs to a
  // different set; kConfig: a formula that does not fit the members.
  core::Result<bool> add(const SetRewards& request);

  // The set for a group that is issued now: the newest that holds for the update, or, if that one
  // is retired, the next one that is not.
  RewardSetPtr for_update(std::uint64_t update) const;
  RewardSetPtr first() const { return first_; }
  // The set for the held-out prompt at this place of an evaluation.
  RewardSetPtr held_out(std::uint64_t place) const;
  // Whether the set belongs to held-out prompts alone.
  static bool is_held_out(const RewardSet& set) { return set.number >= kHeldOut_first; }
  RewardSetPtr numbered(std::uint64_t number) const;  // null: not kept here
  RewardSetPtr newest() const { return sets_.back().set; }

  // Retires all sets that need this reward; the newest must not need it.
  void retire(const std::string& name);
  // Drops the sets that no update from `update` on can get.
  void forget_before(std::uint64_t update);
  std::size_t size() const noexcept { return sets_.size(); }

 private:
  // Sets of held-out prompts are numbered from here on.
  static constexpr std::uint64_t kHeldOut_first = std::uint64_t{1} << 62;
  struct Entry {
    RewardSetPtr set;
    bool retired = false;
  };
  // Index of the newest set that holds for the update.
  std::size_t in_force(std::uint64_t update) const;

  RewardSetPtr first_;
  std::vector<std::pair<std::uint64_t, RewardSetPtr>> held_out_;  // each with the end of its places
  std::vector<Entry> sets_;  // by number; never empty, and the last is not retired
};

}  // namespace troupe::actors::data
