// The messages to a reward role, and those to controller and data role that change the reward set
// of a live run. Plain values (messages.hpp has the other messages).
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/reward_group.hpp"
#include "runtime/core/result.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

// ---- to a reward role

struct Scores {
  std::vector<std::optional<double>> values;    // in the order of the samples
  std::vector<std::string> causes{};            // why a value is missing, "" otherwise
  std::vector<std::string> extras{};            // other values of a sample: a JSON object, or ""
  std::vector<std::vector<StepScore>> steps{};  // of a sample; empty unless steps are scored
  std::string modules{};  // once: a JSON object, the SHA-256 of each file that its code has loaded
};

// Asks a reward what it reads.
struct IntroduceReward {
  using Reply = RewardReads;
};

struct Score {
  using Reply = Scores;
  RewardGroup group;  // for an evaluation its `update` is 0
  RewardReads sent;   // what `group` holds besides prompt, responses and label
};

// ---- reward sets

// Refuses a weight that is not finite, which would make every score useless.
inline core::Result<void> finite_weight(const std::string& name, double weight) {
  if (std::isfinite(weight)) return {};
  return core::fail(core::ErrorCode::kData, "the weight of reward " + name + " is not finite");
}

// The peer of the reward that came with the samples: no role, and never asked.
inline constexpr const char* kFeedbackPeer = "feedback";

// One reward of a set.
struct RewardMember {
  std::string name;  // as the user calls it: "format"
  std::string peer;  // the role that gives it: "reward/format", or kFeedbackPeer
  double weight = 1;
  core::Result<void> check() const { return finite_weight(name, weight); }
  friend bool operator==(const RewardMember&, const RewardMember&) = default;
};

// Adds a reward set: it scores groups that are issued from now on for `from_update` and later
// updates; a reissued slot gets the set in force then. Groups that still wait for a `lost` reward
// fail, and their slots are issued again.
struct SetRewards {
  using Reply = Ack;
  std::uint64_t set = 0;
  std::uint64_t from_update = 0;
  std::vector<RewardMember> members;
  std::vector<std::string> lost;
  std::string formula{};  // RewardFormula of the members; "": their weighted sum
};

// Answers once no open group waits for the reward.
struct DrainReward {
  using Reply = Ack;
  std::string name;
};

// ---- to the controller

// The reply to the three requests below. `from_update`: the first update that the change holds for.
struct RewardsChanged {
  std::uint64_t set = 0;
  std::uint64_t from_update = 0;
};
struct AttachReward {
  using Reply = RewardsChanged;
  std::string name;
  std::string peer;
  double weight = 1;
  std::string formula{};  // formula of the new set; "": keep the last one
  core::Result<void> check() const { return finite_weight(name, weight); }
};
struct ReweightReward {
  using Reply = RewardsChanged;
  std::string name;  // "": no weight changes
  double weight = 1;
  std::string formula{};  // formula of the new set; "": keep the last one
  core::Result<void> check() const { return finite_weight(name, weight); }
};
// Answers once the last group that needs the reward is scored.
struct DetachReward {
  using Reply = RewardsChanged;
  std::string name;
};

}  // namespace troupe::actors
