// What a seed draws: the shape of the run, the speed of its parts, the faults, the changes of
// rewards. A plain value: the same seed gives the same plan.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::sim {

inline constexpr const char* kHeadHost = "host-a";
inline constexpr const char* kFarHost = "host-b";
inline constexpr const char* kRankNode = "node/p1";  // of the far host; offers to run a policy

enum class Method { kPpo, kSupervised };

struct Fault {
  enum class Kind {
    kCrash,       // of a process
    kFreeze,      // of a process, for `span`; a long one is a host that slept
    kHostCrash,   // of the far host; its nodes come back after `span`
    kHostFreeze,  // of the far host
    kCut,         // of the link, both ways
    kCutOneWay,   // from the head's host, or to it
    kFlap,        // the link goes and comes, `times` times
    kReset,       // the far nodes' connections end, and what is on its way with them
    kSlow,        // the link carries few bytes a second
    kError,       // a living role's next calls fail with `code`
    kDiskFull,    // the disk of the head's host
    kRepeat,      // requests arrive a second time
    kHeadCrash,   // the head's process; the same command comes `span` later
    kHeadFreeze,
    kSick,        // an engine's calls fail with `code` until its role is started again
    kDrain,       // a far node is asked to leave
    kWriteCrash,  // of the process that does the `times`-th write from then on, in the middle of it
    kPoison,      // every engine fails with `code` at the prompts of row `times`
    kRankLoss,    // a rank is killed or frozen as soon as its gang comes to the phase `what`
  };
  Kind kind = Kind::kCrash;
  core::Duration at{}, span{};
  // Of a process or role, or "all generators"; "to" or "from" for one way.
  std::string target;
  std::string what;  // of an error: which call fails
  core::ErrorCode code = core::ErrorCode::kInternal;
  std::uint64_t times = 1;
  std::string text() const;
};
const char* kind_name(Fault::Kind kind);

struct RewardStep {
  enum class Kind { kAttach, kReweight, kDetach };
  Kind kind = Kind::kAttach;
  core::Duration at{};
  double weight = 1;
};

struct WorldPlan {
  std::uint64_t seed = 0;
  Method method = Method::kPpo;
  std::uint64_t updates = 6;  // or steps
  std::uint32_t groups = 4;   // or rows of a step
  std::int32_t samples = 3;
  std::uint64_t staleness_max = 0;
  std::uint64_t save_steps = 0;
  std::uint64_t ranks = 1, critic_ranks = 1;  // of policy and critic
  bool far_rank = false;                      // the policy, or its last rank, is on the far host
  bool critic = false, reference = false, evaluates = false, filters = false;
  bool scores = false;                 // it trains a reward model
  std::uint64_t evaluation_steps = 2;  // where it evaluates
  core::Duration straggler_timeout{};
  std::vector<std::string> far_nodes;  // each plays a generator
  core::Duration token{}, train{}, load{}, score{};
  std::vector<Fault> faults;
  std::vector<RewardStep> rewards;  // of one reward that is attached by a guest
  core::Duration next_run{};        // when another run takes the place of the first; 0: never

  // Whether a fault may make a reward or the engines give a group up, so that another prompt takes
  // its place.
  bool replaces_prompts() const;
  // Whether nothing happens to the far host, where the attached reward is, and to the head.
  bool faults_spare_rewards() const;
  bool has(Fault::Kind kind) const;
  bool asynchronous() const { return staleness_max > 0; }
  bool supervised() const { return method == Method::kSupervised; }
  std::string text() const;
};

WorldPlan draw_plan(std::uint64_t seed);
// Of a supervised run.
WorldPlan draw_supervised_plan(std::uint64_t seed);
// The same run without faults and without changes of rewards, from the beginning to the end.
WorldPlan calm(WorldPlan plan);

}  // namespace troupe::sim
