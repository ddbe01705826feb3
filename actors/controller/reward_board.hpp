// The rewards of a run: who is in the set that scores from now on, and which changes make sense. A
// pure value: a change is made on a copy, and the copy replaces the board once the data role knows.
// Rewards are the run's own (from its configuration) or attached while it runs.
#pragma once

#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors {

class RewardBoard {
 public:
  // `own`: set 0. `earlier`: sets that an earlier life of the run had beyond it; the rewards that
  // were attached then are absent until they come back. The data role knows both from its start.
  explicit RewardBoard(std::vector<RewardMember> own, const std::vector<SetRewards>& earlier = {});

  // Errors: kInvalidArgument, saying what to do instead.
  core::Result<void> attach(const AttachReward& request);
  core::Result<void> reweight(const ReweightReward& request);
  core::Result<void> detach(const DetachReward& request);

  // An attached reward that is gone, or was detached and still had groups to score: named in the
  // next message to the data role. False when the peer is none of those.
  bool lose(const std::string& peer);
  bool is_attached(const std::string& peer) const;

  // A reward of an earlier life is there again; false when none of that name and peer is awaited.
  bool came(const std::string& name, const std::string& peer);
  bool is_absent(const std::string& name) const { return absent_.contains(name); }
  // Names.
  const std::set<std::string>& absent() const noexcept { return absent_; }

  // A detached reward has scored its last group.
  void drained(const std::string& name);
  // One that was detached while it was absent scores nothing any more.
  void forgo(const std::string& name);

  // The change as the data role is told.
  SetRewards change(std::uint64_t from_update) const;
  void told() { lost_.clear(); }

  // The last reward was lost: nothing can be scored until another is attached.
  bool bereft() const noexcept { return members_.empty() && set_ > 0; }

  std::uint64_t set() const noexcept { return set_; }
  const std::vector<RewardMember>& members() const noexcept { return members_; }

 private:
  // Error: that there is none of that name.
  core::Result<RewardMember*> member(const std::string& name);

  std::uint64_t set_ = 0;
  std::vector<RewardMember> members_;
  std::set<std::string> attached_;  // names
  std::set<std::string> absent_;    // those of them that have not come back
  std::vector<RewardMember> draining_;
  std::vector<std::string> lost_;
};

}  // namespace troupe::actors
