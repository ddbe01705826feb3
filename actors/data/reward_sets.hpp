// Which rewards score the groups of which update. A set is named by a number and holds from an
// update on; a group gets one set with its ticket and keeps it. A set that needs a reward which is
// gone is never given out again. Pure; owned by the data role, used on its strand. Bounded by the
// changes since the oldest open update, and kRewardMembers_max rewards a set.
#pragma once

#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

struct RewardSet {
  std::uint64_t number = 0;
  std::uint64_t from_update = 0;
  std::vector<RewardMember> members;

  // Place of the reward in `members`.
  std::optional<std::size_t> member(const std::string& name) const;
  friend bool operator==(const RewardSet&, const RewardSet&) = default;
};

using RewardSetPtr = std::shared_ptr<const RewardSet>;

class RewardSets {
 public:
  // `first` is set 0, which holds from the start and scores every evaluation.
  explicit RewardSets(std::vector<RewardMember> first);

  // What an earlier life of the run had added, in its order. A set that names a reward which the
  // newest lacks is retired: that reward is gone. Errors: those of `add`.
  core::Result<void> restore(const std::vector<SetRewards>& earlier);
  // For the next life: what is known beyond the first set.
  std::vector<SetRewards> added() const;

  // Groups of updates from `from_update` on get it, unless a newer set does. False when it was
  // known already (a message may come twice). Sets that need a lost reward are retired. Errors,
  // kInvalidArgument: no member, a name twice, a weight that is no number, a lost member, a number
  // that is not the newest or stands for something else.
  core::Result<bool> add(const SetRewards& request);

  // The set for a group that is issued now: the newest that holds for the update. In place of a
  // retired one, the next after it.
  RewardSetPtr for_update(std::uint64_t update) const;
  RewardSetPtr first() const { return first_; }
  RewardSetPtr newest() const { return sets_.back().set; }

  // No group gets a set that needs this reward any more; the newest set must not.
  void retire(const std::string& name);
  // Drops what no update from `update` on can get.
  void forget_before(std::uint64_t update);
  std::size_t size() const noexcept { return sets_.size(); }

 private:
  struct Entry {
    RewardSetPtr set;
    bool retired = false;
  };
  // Place of the newest set that holds for the update.
  std::size_t in_force(std::uint64_t update) const;

  RewardSetPtr first_;
  std::vector<Entry> sets_;  // by number; never empty, and the last is not retired
};

}  // namespace troupe::actors
