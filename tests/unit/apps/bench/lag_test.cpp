// The lag study's task, runs and summary.
#include "apps/bench/lag.hpp"

#include "apps/bench/lag_run.hpp"
#include "apps/bench/lag_summary.hpp"
#include "apps/bench/lag_task.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::app {
namespace {

using Tokens = std::vector<std::int32_t>;

}  // namespace

TEST(LagTask, ScoresTheShareOfSymbolsGivenBackwards) {
  const LagTask task;
  EXPECT_DOUBLE_EQ(task.score(Tokens{1, 2, 3, 8}, Tokens{3, 2, 1}), 1.0);
  EXPECT_DOUBLE_EQ(task.score(Tokens{1, 2, 3, 8}, Tokens{1, 2, 3}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(task.score(Tokens{1, 2, 3, 8}, Tokens{8, 8, 8}), 0.0);
}

TEST(LagRun, SameSeedGivesTheSameScores) {
  for (const auto arm : lag_arms()) {
    LagJob job;
    job.arm = std::string(arm);
    job.lag = 2;
    job.updates = 6;
    const auto first = run_lag(job), second = run_lag(job);
    ASSERT_TRUE(first.has_value() && second.has_value()) << arm;
    EXPECT_EQ(first->final_score, second->final_score) << arm;
    EXPECT_EQ(first->kl_rollout, second->kl_rollout) << arm;
  }
}

TEST(LagRun, OldSamplesAreOffPolicyAndFreshOnesBeginOnPolicy) {
  LagJob job;
  job.arm = "decoupled";
  job.updates = 6;
  const auto fresh = run_lag(job);
  job.lag = 3;
  const auto old = run_lag(job);
  ASSERT_TRUE(fresh.has_value() && old.has_value());
  EXPECT_EQ(fresh->ess, 1.0);
  EXPECT_LT(old->ess, 1.0);
  EXPECT_GT(old->kl_rollout, fresh->kl_rollout);
}

TEST(LagSummary, GivesMeanIntervalAndWhatIsKept) {
  const LagCell zero{"ppo", 0, {0.8, 1.0}}, four{"ppo", 4, {0.45, 0.45}};
  EXPECT_NEAR(zero.mean(), 0.9, 1e-15);
  // Deviation sqrt(0.02), over sqrt(2): 0.1; t with one degree of freedom is 12.706.
  EXPECT_NEAR(zero.half_interval(), 1.2706, 1e-12);
  EXPECT_EQ((LagCell{"ppo", 0, {0.8}}.half_interval()), 0.0);
  const std::string table = lag_table({zero, four});
  EXPECT_NE(table.find("| ppo | 0.900 ± 1.271 | 0.450 ± 0.000 (50 %) |"), std::string::npos) << table;
  const std::string figure = lag_figure({zero, four});
  EXPECT_EQ(figure.rfind("<svg", 0), 0u);
  EXPECT_NE(figure.find("</svg>"), std::string::npos);
}

TEST(BenchLag, NamesAnUnknownArm) {
  const std::vector<std::string> words = {"--arm", "ppp"};
  const auto result = bench_lag(words);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("'ppp'"), std::string::npos);
}

}  // namespace troupe::app
