// Whole runs of a company under faults, one a seed. A failing seed prints its plan and the command
// that plays it again with a trace.
#include "tests/sim/world/world.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace troupe::sim {
namespace {

constexpr std::uint64_t kSeeds = 300;

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string play_again(std::uint64_t seed) {
  return "TROUPE_SIM_SEED=" + std::to_string(seed) +
         " build/bin/test_sim --gtest_filter=CompanyWorld.* writes sim_trace.txt";
}

bool play(std::uint64_t seed, Census& census) {
  const WorldPlan plan = draw_plan(seed);
  World world(plan);
  world.run();
  census.add(world.census());
  if (world.wrong().empty()) return true;
  ADD_FAILURE() << world.wrong().front() << "\n" << plan.text() << "\n" << play_again(seed);
  return false;
}

TEST(CompanyWorld, NothingIsLostOrDoneTwice) {
  if (const char* const text = std::getenv("TROUPE_SIM_SEED")) {
    const WorldPlan plan = draw_plan(std::strtoull(text, nullptr, 10));
    World world(plan, true);
    world.run();
    std::ofstream trace("sim_trace.txt");
    trace << plan.text() << "\n";
    for (const std::string& line : world.trace())
      trace << line << "\n";
    for (const std::string& line : world.wrong())
      trace << "WRONG " << line << "\n";
    EXPECT_TRUE(world.wrong().empty()) << world.wrong().front();
    return;
  }
  Census census;
  const std::uint64_t first = number_in("TROUPE_SIM_FIRST", 0);
  const std::uint64_t count = number_in("TROUPE_SIM_SEEDS", kSeeds);
  const std::uint64_t failures_max = number_in("TROUPE_SIM_FAILURES", 1);
  std::uint64_t failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < failures_max; ++seed)
    failures += play(seed, census) ? 0 : 1;
  std::printf("%s", census.text().c_str());
}

}  // namespace
}  // namespace troupe::sim
