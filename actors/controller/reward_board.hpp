// The controller's record of a run's rewards: the run's own (from its configuration) and those
// attached later. It checks every change. A pure value: RewardService changes a copy, which
// replaces the board once the data role has taken the change.
#pragma once

#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors::controller {

class RewardBoard {
 public:
  // `own`: set 0, with its `formula`. `earlier`: the later sets of a checkpoint; their attached
  // rewards are absent until they come back. The data role knows both from its start.
  explicit RewardBoard(std::vector<RewardMember> own,
                       const std::vector<SetRewards>& earlier = {},
                       std::string formula = "");

  // Errors: kInvalidArgument, saying what to do instead; kConfig, a formula that is malformed or
  // does not fit the rewards.
  core::Result<void> attach(const AttachReward& request);
  core::Result<void> reweight(const ReweightReward& request);
  core::Result<void> detach(const DetachReward& request);

  // Removes the rewards of a lost peer: attached ones, and detached ones that still had groups to
  // score. The next message to the data role names them. False for any other peer.
  bool lose(const std::string& peer);
  bool is_attached(const std::string& peer) const;

  // A reward from the checkpoint is back. False when none of that name and peer is absent.
  bool came(const std::string& name, const std::string& peer);
  bool is_absent(const std::string& name) const { return absent_.contains(name); }
  // Names of the rewards that have not come back.
  const std::set<std::string>& absent() const noexcept { return absent_; }

  // The detached reward has scored its last group.
  void drained(const std::string& name);
  // The reward was detached while absent: counts it as lost.
  void forgo(const std::string& name);

  // The message that tells the data role of the change.
  SetRewards change(std::uint64_t from_update) const;
  void told() { lost_.clear(); }  // the data role has that message

  // True when the last reward, or one that the formula names, was lost: nothing can be scored until
  // it is attached again, another one is, or the formula is changed.
  bool bereft() const { return set_ > 0 && (members_.empty() || !fits()); }

  std::uint64_t set() const noexcept { return set_; }
  const std::vector<RewardMember>& members() const noexcept { return members_; }
  const std::string& formula() const noexcept { return formula_; }

 private:
  bool fits() const;
  // The formula of a request, or the one in force if that is empty. Error: it does not fit.
  core::Result<std::string> formula_for(const std::vector<RewardMember>& members,
                                        const std::string& wanted = "") const;

  // Error when there is no reward of that name.
  core::Result<RewardMember*> member(const std::string& name);

  std::uint64_t set_ = 0;
  std::vector<RewardMember> members_;
  std::string formula_;             // reward_formula.hpp
  std::set<std::string> attached_;  // names
  std::set<std::string> absent_;    // those that have not come back since the run resumed
  std::vector<RewardMember> draining_;
  std::vector<std::string> lost_;
};

}  // namespace troupe::actors::controller
