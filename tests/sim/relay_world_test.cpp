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

}  // namespace
}  // namespace troupe::sim
