// The plan of a run: its settings, and when they allow tickets, checkpoints and evaluations. Pure.
// A ticket of update u may be issued while u <= done + staleness_max.
#pragma once

#include "actors/protocol/limits.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/clock.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::actors::controller {

// The roles that hold what a run has learned.
inline constexpr const char* kDataRole = "data/0";
inline constexpr const char* kPolicyRole = "policy/0";
inline constexpr const char* kCriticRole = "critic/0";

// An update in which policy or critic failed by itself, and how often it has so far.
struct FailedUpdate {
  std::uint64_t update = 0;
  std::uint64_t times = 0;
};

struct RunPlan {
  std::uint64_t first_update = 0;  // updates already done by a resumed run
  // Tickets of earlier updates may be in the experience log, with their reward sets.
  std::uint64_t logged_until = 0;
  // The versions at the start of updates before the first, as far as the log knows them: tokens of
  // logged groups may be that old.
  std::map<std::uint64_t, core::Version> earlier_starts{};
  std::uint64_t updates = 0;       // of the whole run
  std::string unit = "update";     // the word for an update in messages
  bool logs_groups = true;         // what was sampled is in the experience log
  std::uint32_t groups = 1;        // of one update
  std::int32_t samples = 1;        // of one group
  bool episodes = false;           // samples are episodes: environments take the tickets
  bool environments_come = false;  // and environments come and go
  std::uint64_t staleness_max = 0;
  SamplingSpec sampling;
#define KEYS "actors/controller/checkpoint_keys.def"
#define TAKE take_saving
#include "runtime/config/fill.def"
  bool has_critic = false;
  bool save_critic = false;  // save the critic as a model folder wherever the policy is

  std::uint32_t evaluation_groups = 0;  // 0 = no evaluation
  // The sets that these belong to, one after the other; empty: one without a name.
  struct HeldOut {
    std::string name;
    std::uint32_t groups = 0;
  };
  std::vector<HeldOut> evaluation_sets{};
  struct EvaluationPlan {
#define KEYS "actors/controller/evaluation_keys.def"
#include "runtime/config/fill.def"
  };
  EvaluationPlan evaluation;
  // How many of the two evaluations (greedy, sampled) after the first update of a resumed run
  // are still to make.
  std::uint64_t evaluations_owed = 0;

  std::uint32_t attempts_max = 4;    // failed groups of one slot at which the run ends
  std::uint32_t filtered_max = 100;  // filtered groups of one slot at which the run ends
  // How long the trainer waits for an update before its unfinished groups are cut; 0 = no limit.
  core::Duration straggler_timeout{0};
  bool filters = false;      // the data role filters groups by their mean score
  bool recompute_kv = true;  // at a swap of weights running samples compute their keys again
  // How long a resumed run waits for its attached rewards, and a run without rewards for a new one.
  core::Duration reward_away = actors::limits::kRewardWait;
  // When policy or critic is lost or fails in an update, another session goes on from the last
  // checkpoint.
  bool restarts = false;
  FailedUpdate failed;                   // in earlier sessions
  std::vector<RewardMember> rewards;     // the run's own: set 0 of the data role
  std::string reward_formula;            // of set 0
  std::vector<SetRewards> earlier_sets;  // the sets of the checkpoint beyond set 0, by number

  // The n-th update, from 1: "update 3".
  std::string name_of(std::uint64_t n) const { return unit + " " + std::to_string(n); }
  bool may_issue(std::uint64_t update, std::uint64_t done) const {
    return update < updates && update <= done + staleness_max;
  }
  bool save_after(std::uint64_t done) const {
    return done == updates || (save_steps > 0 && done % save_steps == 0);
  }
  // How many evaluations are due after `done` updates, when the run gets there.
  std::uint64_t evaluations_due(std::uint64_t done) const {
    if (!evaluate_after(done)) return 0;
    return done == first_update && done > 0 ? evaluations_owed : 2;
  }
  bool evaluate_after(std::uint64_t done) const {
    if (evaluation_groups == 0) return false;
    return done == 0 || done == updates || (evaluation.steps > 0 && done % evaluation.steps == 0);
  }
};

}  // namespace troupe::actors::controller
