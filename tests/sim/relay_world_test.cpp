// Weights that receivers pass on, with troubles, one world a seed.
#include "tests/sim/relays/relay_world.hpp"

#include "runtime/weights/limits.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace troupe::sim {
namespace {

constexpr std::uint64_t kSeeds = 300;

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What was found wrong first. A slow receiver is no reason for another copy.
std::string verdict(RelayWorld& world, const RelayPlan& plan) {
  world.run();
  if (!world.wrong().empty()) return world.wrong().front();
  const bool few = world.copies_max() <= weights::limits::kWeightCopies_max;
  if (plan.only_slow() && plan.all_reachable() && !few)
    return std::to_string(world.copies_max()) + " copies of a version left the publisher";
  return "";
}

TEST(RelayWorld, EveryReceiverGetsTheNewestVersionWholeFromFewCopies) {
  Census census;
  const std::uint64_t only = number_of("TROUPE_SIM_SEED", ~0ull);
  const std::uint64_t first = only != ~0ull ? only : number_of("TROUPE_SIM_FIRST", 0);
  const std::uint64_t count = only != ~0ull ? 1 : number_of("TROUPE_SIM_SEEDS", kSeeds);
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const RelayPlan plan = draw_relay_plan(seed);
    RelayWorld world(plan);
    EXPECT_EQ(verdict(world, plan), "") << plan.text() << "\nTROUPE_SIM_SEED=" << seed
                                        << " build/bin/test_sim --gtest_filter=RelayWorld.*";
    census.add(world.census());
  }
  std::printf("%s", census.text().c_str());
  if (count < kSeeds || HasFailure()) return;
  for (int kind = 0; kind < RelayTrouble::kKinds; ++kind) {
    const std::string name = name_of(static_cast<RelayTrouble::Kind>(kind));
    EXPECT_GT(census.of("trouble", name), 0u) << name;
  }
  for (const char* what :
       {"whole from the publisher", "whole from a relay", "whole in a relay's memory",
        "wrong bytes are seen", "a fetch fails", "a stream is taken back"})
    EXPECT_GT(census.of("relay", what), 0u) << what;
  for (const auto fault : {weights::RelayFault::kLost, weights::RelayFault::kSilent,
                           weights::RelayFault::kWrong, weights::RelayFault::kSlow})
    EXPECT_GT(census.of("relay fault", std::to_string(static_cast<int>(fault))), 0u);
}

// Versions come faster than slow receivers take them, so relays take older ones back from those.
// Receivers that come anew meanwhile are sent to these relays, and no more copies are needed.
TEST(RelayWorld, ARelayThatGaveUpAnOlderVersionFeedsOthersInTheNewerOne) {
  Census census;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RelayPlan plan;
    plan.seed = seed;
    plan.receivers = 24;
    for (std::uint32_t number = 1; number <= plan.receivers; ++number)
      plan.hosts.push_back(number);
    plan.reachable.assign(plan.receivers, true);
    plan.buckets = 12;
    plan.versions = 12;
    plan.bucket = std::chrono::milliseconds(4);
    plan.between = std::chrono::milliseconds(500);
    for (std::uint32_t slow = 1; slow <= 10; ++slow) {
      plan.troubles.push_back(
          {RelayTrouble::Kind::kDownSlow, {}, std::chrono::seconds(6), slow, 0});
    }
    for (std::uint32_t ends = 11; ends <= 24; ++ends) {
      plan.troubles.push_back({RelayTrouble::Kind::kDeath, ends * std::chrono::milliseconds(200),
                               std::chrono::milliseconds(100), ends, 0});
    }
    RelayWorld world(plan);
    EXPECT_EQ(verdict(world, plan), "") << plan.text();
    census.add(world.census());
  }
  std::printf("%s", census.text().c_str());
  EXPECT_GT(census.of("relay", "one that gave up an older version feeds again"), 0u);
}

}  // namespace
}  // namespace troupe::sim
