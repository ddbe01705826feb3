// Reward sets as plain values: what the data role and the controller are told of rewards that come and
// go while a run goes on (messages.hpp has the other messages).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

// One reward of a set. The score of a sample is the sum of weight times score over the members.
struct RewardMember {
  std::string name;  // as the user calls it: "format"
  std::string peer;  // the role that gives it: "reward/format"
  double weight = 1;
  friend bool operator==(const RewardMember&, const RewardMember&) = default;
};

// Groups issued from now on for updates from `from_update` on are scored by this set; a reissued slot
// gets the set in force then. Groups that still wait for a `lost` reward fail, to be issued again.
struct SetRewards {
  using Reply = Ack;
  std::uint64_t set = 0;
  std::uint64_t from_update = 0;
  std::vector<RewardMember> members;
  std::vector<std::string> lost;
};

// Answers once no open group waits for the reward.
struct DrainReward {
  using Reply = Ack;
  std::string name;
};

// To the controller. The reply names the first update whose tickets the change holds for.
struct RewardsChanged {
  std::uint64_t set = 0;
  std::uint64_t from_update = 0;
};
struct AttachReward {
  using Reply = RewardsChanged;
  std::string name;
  std::string peer;
  double weight = 1;
};
struct ReweightReward {
  using Reply = RewardsChanged;
  std::string name;
  double weight = 1;
};
// Answers once the last group that needs the reward is scored.
struct DetachReward {
  using Reply = RewardsChanged;
  std::string name;
};

}  // namespace troupe::actors
