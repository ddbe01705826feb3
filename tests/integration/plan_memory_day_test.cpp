// The same for many runs: the formulas of `troupe plan` hold whatever is drawn.
#include "plan_ranks_support.hpp"

namespace troupe::test {
namespace {

TEST(PlanMemoryManySeeds, IsWithinATenth) {
  for (std::uint64_t seed = 10; seed < 22; ++seed) {
    DrawnRun run = draw_run(std::vector<std::string>{"pretrain", "dpo", "ppo"}[seed % 3], seed);
    run.own_processes = seed % 2 == 0;
    if (run.method != "ppo") run.own_processes = false;
    expect_plan_holds(run);
  }
}

TEST(PlanMemoryManySeeds, OfEachRankThatDividesTheMomentsIsWhatItTakes) {
  expect_plan_of_ranks_holds(draw_ranks("dpo", 4, 2, 1));
}

// Of 2 and of 4 ranks, at each stage.
TEST(PlanMemoryManySeeds, OfRanksIsWithinATenth) {
  for (std::uint64_t seed = 30; seed < 42; ++seed) {
    const std::string method = std::vector<std::string>{"pretrain", "dpo", "sft"}[seed % 3];
    expect_plan_of_ranks_holds(
        draw_ranks(method, seed, seed % 4 < 2 ? 2 : 4, static_cast<int>(seed / 2 % 4)));
  }
}

}  // namespace
}  // namespace troupe::test
