// What a supervised run draws: everything that can happen to its trainer, and to the head.
#include "tests/sim/world/dice.hpp"
#include "tests/sim/world/plan.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::sim {

using namespace std::chrono_literals;
using core::ErrorCode;
using Kind = Fault::Kind;

namespace {

// The processes that have a rank.
std::vector<std::string> trainers(const WorldPlan& plan) {
  std::vector<std::string> all;
  for (std::uint64_t rank = 0; rank < plan.ranks; ++rank) {
    if (plan.far_rank && rank + 1 == plan.ranks) {
      all.push_back(kRankNode);
    } else {
      all.push_back(rank == 0 ? "node/policy" : "node/policy-" + std::to_string(rank));
    }
  }
  return all;
}

// Fails the next calls of the trainer, with what passes when it starts again; fewer than
// kUpdateFailures_max in the whole run.
void draw_error(Dice& dice, const WorldPlan& plan, Fault& fault) {
  constexpr ErrorCode kPasses[] = {ErrorCode::kResources, ErrorCode::kInternal,
                                   ErrorCode::kDeadline};
  fault.target = "policy/0";
  fault.what = plan.evaluates && dice.one_in(2) ? "evaluate" : "train";
  fault.code = dice.one_of(kPasses);
}

// Loses a rank when the trainer comes to a phase.
void draw_loss(Dice& dice, const WorldPlan& plan, Fault& fault) {
  std::vector<std::string> phases = {"load", "train", "evaluate", "save", "model"};
  if (plan.ranks > 1) phases.insert(phases.end(), {"start", "meet"});
  fault.what = dice.one_of(phases);
  fault.target = dice.one_of(trainers(plan));
  fault.times = dice.below(2);  // 0: killed, 1: frozen
  fault.span = dice.between(500ms, dice.one_in(3) ? 20s : 4s);
  fault.at = dice.between(0ms, 3s);
}

Fault draw_fault(Dice& dice, const WorldPlan& plan, Kind kind) {
  Fault fault;
  fault.kind = kind;
  fault.at = dice.between(100ms, 4s);
  fault.span = dice.between(200ms, dice.one_in(4) ? 9s : 3s);
  switch (kind) {
    case Kind::kFreeze:
      fault.target = dice.one_of(trainers(plan));
      if (dice.one_in(8)) fault.span = dice.between(55s, 90s);
      break;
    case Kind::kCrash:
      fault.target = dice.one_of(trainers(plan));
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
    case Kind::kRankLoss:
      draw_loss(dice, plan, fault);
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
  std::vector<Kind> kinds = {
      Kind::kCrash,    Kind::kFreeze,   Kind::kError,     Kind::kError,      Kind::kRankLoss,
      Kind::kRankLoss, Kind::kRankLoss, Kind::kHeadCrash, Kind::kHeadCrash,  Kind::kHeadFreeze,
      Kind::kDiskFull, Kind::kRepeat,   Kind::kRepeat,    Kind::kWriteCrash, Kind::kWriteCrash};
  if (plan.far_rank) {
    for (const Kind kind : {Kind::kHostCrash, Kind::kHostFreeze, Kind::kCut, Kind::kCutOneWay,
                            Kind::kFlap, Kind::kReset, Kind::kSlow})
      kinds.push_back(kind);
  }
  for (std::uint64_t left = 2 + dice.below(4); left > 0;) {
    const Kind kind = dice.one_of(kinds);
    // Two errors could fail one step as often as ends a run.
    if (kind == Kind::kError && plan.has(kind)) continue;
    plan.faults.push_back(draw_fault(dice, plan, kind));
    --left;
  }
  std::stable_sort(plan.faults.begin(), plan.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

}  // namespace

WorldPlan draw_supervised_plan(std::uint64_t seed) {
  Dice dice(seed, 78);
  WorldPlan plan;
  plan.seed = seed;
  plan.method = Method::kSupervised;
  plan.updates = 5 + dice.below(8);
  plan.groups = 2 + static_cast<std::uint32_t>(dice.below(3));
  plan.save_steps = dice.below(4);
  plan.evaluates = !dice.one_in(4);
  plan.evaluation_steps = 1 + dice.below(3);
  plan.scores = plan.evaluates && dice.one_in(3);
  plan.ranks = dice.one_in(2) ? 1 : 2 + dice.below(2);
  plan.far_rank = dice.one_in(3);
  plan.train = dice.between(50ms, 500ms);
  plan.load = dice.between(20ms, 600ms);
  draw_faults(dice, plan);
  return plan;
}

}  // namespace troupe::sim
