#include "tests/sim/relays/plan.hpp"

#include "tests/sim/world/dice.hpp"

#include <algorithm>

namespace troupe::sim {

using namespace std::chrono_literals;
using Kind = RelayTrouble::Kind;

namespace {

RelayTrouble draw_trouble(Dice& dice, const RelayPlan& plan) {
  RelayTrouble trouble;
  trouble.kind = static_cast<Kind>(dice.below(RelayTrouble::kKinds));
  trouble.at = dice.between(10ms, static_cast<std::int64_t>(plan.versions) * plan.between);
  trouble.span = dice.between(100ms, dice.one_in(3) ? 12s : 3s);
  trouble.target = 1 + static_cast<std::uint32_t>(dice.below(plan.receivers));
  trouble.other = static_cast<std::uint32_t>(dice.below(plan.receivers + 1));
  return trouble;
}

std::string seconds(core::Duration span) {
  return std::to_string(std::chrono::duration<double>(span).count()) + " s";
}

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"death",        "freeze",    "slow to get",
                                    "slow to give", "withholds", "wrong bytes",
                                    "deaf",         "cut",       "publisher restarts"};
  return kNames[static_cast<int>(kind)];
}

std::string RelayTrouble::text() const {
  return "at " + seconds(at) + ": " + name_of(kind) + " " + std::to_string(target) +
         (kind == Kind::kCut ? " and " + std::to_string(other) : "") + " for " + seconds(span);
}

bool RelayPlan::all_reachable() const {
  return std::all_of(reachable.begin(), reachable.end(), [](bool one) { return one; });
}

bool RelayPlan::only_slow() const {
  return std::all_of(troubles.begin(), troubles.end(),
                     [](const RelayTrouble& trouble) { return trouble.kind == Kind::kDownSlow; });
}

std::string RelayPlan::text() const {
  std::string text = "seed " + std::to_string(seed) + ": " + std::to_string(versions) +
                     " versions of " + std::to_string(buckets) + " buckets of " + seconds(bucket) +
                     " every " + seconds(between) + "; hosts";
  for (std::uint32_t i = 0; i < receivers; ++i)
    text += " " + std::to_string(hosts[i]) + (reachable[i] ? "" : "!");
  for (const RelayTrouble& trouble : troubles)
    text += "\n  " + trouble.text();
  return text;
}

RelayPlan draw_relay_plan(std::uint64_t seed) {
  Dice dice(seed, 79);
  RelayPlan plan;
  plan.seed = seed;
  plan.receivers = 2 + static_cast<std::uint32_t>(dice.below(18));
  const bool shared = dice.one_in(3);  // several receivers on a host
  const bool hidden = dice.one_in(6);  // some that others do not reach
  for (std::uint32_t i = 0; i < plan.receivers; ++i) {
    plan.hosts.push_back(1 + (shared ? static_cast<std::uint32_t>(dice.below(5)) : i));
    plan.reachable.push_back(!hidden || dice.one_in(2));
  }
  plan.buckets = 8 + static_cast<std::uint32_t>(dice.below(40));
  plan.versions = 2 + dice.below(4);
  plan.bucket = dice.between(2ms, 60ms);
  plan.between = dice.between(300ms, 4s);
  const bool slow = dice.one_in(5);
  for (std::uint64_t left = dice.below(6); left > 0; --left) {
    plan.troubles.push_back(draw_trouble(dice, plan));
    if (slow) plan.troubles.back().kind = Kind::kDownSlow;
  }
  std::stable_sort(plan.troubles.begin(), plan.troubles.end(),
                   [](const RelayTrouble& a, const RelayTrouble& b) { return a.at < b.at; });
  return plan;
}

}  // namespace troupe::sim
