// The memory of a process that trains is what `troupe plan` says (plan_memory_day_test.cpp draws
// many).
#include "plan_ranks_support.hpp"

namespace troupe::test {
namespace {

TEST(PlanMemory, OfASupervisedRunIsWhatItTakes) {
  expect_plan_holds(draw_run("pretrain", 1));
}

TEST(PlanMemory, OfEachRankThatDividesTheWeightsIsWhatItTakes) {
  expect_plan_of_ranks_holds(draw_ranks("pretrain", 5, 2, 3));
}

TEST(PlanMemory, OfThePolicysOwnProcessIsWhatItTakes) {
  DrawnRun run = draw_run("ppo", 20);
  run.own_processes = true;
  expect_plan_holds(run);
}

}  // namespace
}  // namespace troupe::test
