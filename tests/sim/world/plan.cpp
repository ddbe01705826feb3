// What a run of the whole company draws.
#include "tests/sim/world/plan.hpp"

#include "tests/sim/living_errors.hpp"
#include "tests/sim/world/dice.hpp"

#include <algorithm>

namespace troupe::sim {

using namespace std::chrono_literals;
using core::ErrorCode;
using Kind = Fault::Kind;

namespace {

// Of a generator: anything may fail with anything.
constexpr const char* kGeneratorCalls[] = {"step", "log-probs", "make", "fetch", "pack"};

std::string any_generator(Dice& dice, const WorldPlan& plan) {
  return "generator/" + std::to_string(dice.below(plan.far_nodes.size() + 1));
}

void draw_error(Dice& dice, const WorldPlan& plan, Fault& fault) {
  fault.times = 1 + dice.below(3);
  if (dice.one_in(3)) {
    constexpr ErrorCode kAway[] = {ErrorCode::kPeerLost, ErrorCode::kClosed, ErrorCode::kDeadline};
    fault.target = "reward/0";
    fault.what = "score";
    fault.code = dice.one_of(kAway);
    return;
  }
  const bool trainer = std::any_of(plan.faults.begin(), plan.faults.end(),
                                   [](const Fault& other) { return other.what == "train"; });
  if (dice.one_in(4) && !trainer) {
    // Together with others it could be three times for one update, which ends the run. What passes
    // with a restart of the trainer.
    constexpr ErrorCode kPasses[] = {ErrorCode::kResources, ErrorCode::kInternal,
                                     ErrorCode::kDeadline};
    fault.target = plan.critic && dice.one_in(2) ? "critic/0" : "policy/0";
    fault.what = "train";
    fault.code = dice.one_of(kPasses);
    fault.times = 1 + dice.below(2);
    return;
  }
  fault.target = any_generator(dice, plan);
  fault.what = dice.one_of(kGeneratorCalls);
  if (fault.what == "fetch" && dice.one_in(2)) {
    fault.target = "all generators";
    fault.times = 3 + dice.below(9);  // a generator itself tries three times
  }
  fault.code = dice.one_of(kLivingErrors);
}

std::string any_process(Dice& dice, const WorldPlan& plan) {
  std::vector<std::string> all = plan.far_nodes;
  all.insert(all.end(), {"node/policy", "node/generator-0", "node/reward"});
  if (plan.critic) all.push_back("node/critic");
  if (plan.reference) all.push_back("node/reference");
  return dice.one_of(all);
}

Fault draw_fault(Dice& dice, const WorldPlan& plan, Kind kind) {
  Fault fault;
  fault.kind = kind;
  fault.at = dice.between(200ms, 6s);
  fault.span = dice.between(200ms, dice.one_in(4) ? 9s : 3s);
  switch (kind) {
    case Kind::kFreeze:
      fault.target = any_process(dice, plan);
      if (dice.one_in(8)) fault.span = dice.between(55s, 90s);
      break;
    case Kind::kHostFreeze:
      if (dice.one_in(4)) fault.span = dice.between(55s, 90s);
      break;
    case Kind::kCrash:
      fault.target = any_process(dice, plan);
      break;
    case Kind::kCutOneWay:
      fault.target = dice.one_in(2) ? "to" : "from";
      break;
    case Kind::kFlap:
      fault.times = 2 + dice.below(4);
      fault.span = dice.between(100ms, 2500ms);
      break;
    case Kind::kError:
      draw_error(dice, plan, fault);
      break;
    case Kind::kHeadFreeze:
      fault.span = dice.between(200ms, 8s);
      break;
    case Kind::kSick:
      fault.target = any_generator(dice, plan);
      fault.what = dice.one_in(2) ? "step" : "log-probs";
      fault.code = dice.one_of(kLivingErrors);
      break;
    case Kind::kDrain:
      fault.target = dice.one_of(plan.far_nodes);
      break;
    case Kind::kWriteCrash:
      fault.times = 1 + dice.below(30);
      break;
    default:
      break;
  }
  return fault;
}

void draw_faults(Dice& dice, WorldPlan& plan) {
  constexpr Kind kKinds[] = {
      Kind::kCrash,  Kind::kCrash,     Kind::kFreeze,     Kind::kHostCrash, Kind::kHostFreeze,
      Kind::kCut,    Kind::kCutOneWay, Kind::kFlap,       Kind::kSlow,      Kind::kError,
      Kind::kError,  Kind::kError,     Kind::kHeadFreeze, Kind::kDiskFull,  Kind::kRepeat,
      Kind::kRepeat, Kind::kReset,     Kind::kWriteCrash, Kind::kSick,      Kind::kDrain};
  const std::uint64_t count = 3 + dice.below(3);
  if (dice.one_in(5)) plan.faults.push_back(draw_fault(dice, plan, Kind::kHeadCrash));
  while (plan.faults.size() < count) {
    const Kind kind = dice.one_of(kKinds);
    // At least two kinds.
    if (plan.faults.size() == 1 && plan.faults[0].kind == kind) continue;
    // At least two generators stay.
    if (kind == Kind::kDrain && plan.has(kind)) continue;
    plan.faults.push_back(draw_fault(dice, plan, kind));
  }
  std::sort(plan.faults.begin(), plan.faults.end(),
            [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

void draw_rewards(Dice& dice, WorldPlan& plan) {
  core::Duration at = dice.between(300ms, 2s);
  plan.rewards.push_back({RewardStep::Kind::kAttach, at, 0.5});
  if (dice.one_in(2)) {
    at += dice.between(100ms, 1s);
    plan.rewards.push_back({RewardStep::Kind::kReweight, at, 2.0});
  }
  if (dice.one_in(2)) {
    at += dice.between(100ms, 1500ms);
    plan.rewards.push_back({RewardStep::Kind::kDetach, at, 0});
  }
}

void draw_poison(Dice& dice, WorldPlan& plan) {
  Fault& fault = plan.faults.emplace_back();
  fault.kind = Kind::kPoison;
  fault.what = "step";
  fault.code = dice.one_of(kLivingErrors);
  fault.times = dice.below(plan.updates * plan.groups);
}

// The ranks of policy and critic, and what becomes of them.
void draw_ranks(Dice& dice, WorldPlan& plan) {
  plan.ranks = 2 + dice.below(2);
  plan.far_rank = dice.one_in(2);
  if (plan.critic && dice.one_in(2)) plan.critic_ranks = 2;
  constexpr const char* kPhases[] = {"start", "meet", "load", "train", "save", "publish"};
  for (std::uint64_t i = 1 + dice.below(2); i > 0; --i) {
    Fault fault;
    fault.kind = Kind::kRankLoss;
    fault.at = dice.between(0ms, 5s);
    fault.what = dice.one_of(kPhases);
    const bool far = plan.far_rank && (plan.ranks == 2 || dice.one_in(2));
    fault.target = far ? kRankNode : "node/policy-1";
    if (plan.critic_ranks > 1 && dice.one_in(4)) fault.target = "node/critic-1";
    if (dice.one_in(8)) fault.target = "node/policy";
    fault.times = dice.below(2);  // 0: killed, 1: frozen
    fault.span = dice.between(500ms, dice.one_in(3) ? 20s : 4s);
    plan.faults.push_back(fault);
  }
  std::stable_sort(plan.faults.begin(), plan.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

std::string seconds(core::Duration span) {
  return std::to_string(std::chrono::duration<double>(span).count()) + " s";
}

}  // namespace

const char* kind_name(Kind kind) {
  constexpr const char* kNames[] = {"crash",
                                    "freeze",
                                    "host crash",
                                    "host freeze",
                                    "cut",
                                    "cut one way",
                                    "flap",
                                    "reset",
                                    "slow link",
                                    "error",
                                    "full disk",
                                    "repeated requests",
                                    "head crash",
                                    "head freeze",
                                    "sick engine",
                                    "drain",
                                    "crash in a write",
                                    "poisonous prompt",
                                    "lost rank"};
  return kNames[static_cast<int>(kind)];
}

std::string Fault::text() const {
  std::string text = "at " + seconds(at) + ": " + kind_name(kind);
  if (!target.empty()) text += " " + target;
  if (!what.empty()) text += " " + what + " " + std::string(core::error_name(code));
  return text + " x" + std::to_string(times) + " for " + seconds(span);
}

bool WorldPlan::has(Fault::Kind kind) const {
  return std::any_of(faults.begin(), faults.end(),
                     [kind](const Fault& fault) { return fault.kind == kind; });
}

bool WorldPlan::replaces_prompts() const {
  return std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    const bool away = fault.what == "score" && fault.code == ErrorCode::kPeerLost;
    const bool trainer = fault.what == "train";
    const bool often = fault.kind == Kind::kError && fault.times >= 2;
    const bool lasting = fault.kind == Kind::kSick || fault.kind == Kind::kPoison;
    return (often || lasting) && !away && !trainer;
  });
}

bool WorldPlan::faults_spare_rewards() const {
  return std::all_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == Kind::kError || fault.kind == Kind::kSick || fault.kind == Kind::kDrain ||
           fault.kind == Kind::kDiskFull || fault.kind == Kind::kRepeat ||
           fault.kind == Kind::kSlow || fault.kind == Kind::kCrash || fault.kind == Kind::kFreeze ||
           fault.kind == Kind::kPoison || fault.kind == Kind::kRankLoss;
  });
}

std::string WorldPlan::text() const {
  std::string text = "seed " + std::to_string(seed) + ": ";
  text +=
      supervised() ? std::to_string(updates) + " steps" : "bound " + std::to_string(staleness_max);
  text += ", saved every " + std::to_string(save_steps);
  if (ranks > 1) text += ", " + std::to_string(ranks) + " ranks";
  if (far_rank) text += ", one far away";
  if (critic) text += ", critic";
  if (critic_ranks > 1) text += " with " + std::to_string(critic_ranks) + " ranks";
  if (reference) text += ", reference";
  if (evaluates) text += ", evaluations";
  if (supervised() && evaluates) text += " every " + std::to_string(evaluation_steps);
  if (filters) text += ", filter";
  if (straggler_timeout > 0ms) text += ", stragglers cut after " + seconds(straggler_timeout);
  for (const Fault& fault : faults)
    text += "\n  " + fault.text();
  constexpr const char* kSteps[] = {"attach", "re-weight", "detach"};
  for (const RewardStep& step : rewards)
    text += "\n  at " + seconds(step.at) + ": " + kSteps[static_cast<int>(step.kind)];
  if (next_run > 0ms) text += "\n  at " + seconds(next_run) + ": another run";
  return text;
}

WorldPlan draw_plan(std::uint64_t seed) {
  Dice dice(seed);
  WorldPlan plan;
  plan.seed = seed;
  plan.samples = 2 + static_cast<std::int32_t>(dice.below(3));
  if (dice.one_in(3)) plan.staleness_max = 1 + dice.below(2);
  plan.save_steps = dice.below(4);
  plan.critic = dice.one_in(3);
  plan.reference = dice.one_in(4);
  plan.evaluates = dice.one_in(5);
  plan.filters = dice.one_in(5);
  if (plan.asynchronous() && dice.one_in(3)) plan.straggler_timeout = dice.between(500ms, 2s);
  plan.far_nodes = {"node/b1", "node/b2"};
  if (dice.one_in(4)) plan.far_nodes.push_back("node/b3");
  plan.token = dice.between(1ms, 8ms);
  plan.train = dice.between(50ms, 500ms);
  plan.load = dice.between(20ms, 600ms);
  plan.score = dice.between(100us, 10ms);
  draw_faults(dice, plan);
  if (dice.one_in(3)) draw_rewards(dice, plan);
  if (dice.one_in(12)) draw_poison(dice, plan);
  if (dice.one_in(3)) draw_ranks(dice, plan);
  return plan;
}

WorldPlan calm(WorldPlan plan) {
  plan.faults.clear();
  plan.rewards.clear();
  plan.next_run = {};
  return plan;
}

}  // namespace troupe::sim
