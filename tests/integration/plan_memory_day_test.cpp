// The same for many runs: the formulas of `troupe plan` hold whatever is drawn.
#include "plan_memory_support.hpp"

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

}  // namespace
}  // namespace troupe::test
