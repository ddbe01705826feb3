// The rewards of a run: who is in the set that scores from now on, and which changes make sense. A
// pure value: a change is made on a copy, and the copy replaces the board once the data role knows.
// Rewards are the run's own (from its configuration) or attached while it runs.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors {

class RewardBoard {
 public:
  // `own`: set 0, which the data role knows from its start.
  explicit RewardBoard(std::vector<RewardMember> own) : members_(std::move(own)) {}

  // Errors: kInvalidArgument, saying what to do instead.
  core::Result<void> attach(const AttachReward& request);
  core::Result<void> reweight(const ReweightReward& request);
  core::Result<void> detach(const DetachReward& request);

  // An attached reward that is gone, or was detached and still had groups to score: named in the
  // next message to the data role. False when the peer is none of those.
  bool lose(const std::string& peer);
  bool is_attached(const std::string& peer) const;

  // A detached reward has scored its last group.
  void drained(const std::string& name);

  // The change as the data role is told.
  SetRewards change(std::uint64_t from_update) const;
  void told() { lost_.clear(); }

  // The last reward was lost: nothing can be scored until another is attached.
  bool bereft() const noexcept { return members_.empty() && set_ > 0; }

  std::uint64_t set() const noexcept { return set_; }
  const std::vector<RewardMember>& members() const noexcept { return members_; }

 private:
  RewardMember* find(const std::string& name);
  std::string names() const;

  std::uint64_t set_ = 0;
  std::vector<RewardMember> members_;
  std::set<std::string> attached_;  // names
  std::vector<RewardMember> draining_;
  std::vector<std::string> lost_;
};

}  // namespace troupe::actors
