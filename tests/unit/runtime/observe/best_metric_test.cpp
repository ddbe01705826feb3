// Which step is best, and that a resumed run knows.
#include "runtime/observe/best_metric.hpp"

#include "runtime/observe/metric_row.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace troupe::observe {
namespace {

MetricRow row(std::uint64_t step, double value) {
  return {step, 0, {{"policy/loss", 1.0}, {"eval/pass@1", value}}};
}

TEST(BestMetric, TheFirstOfTheHighestIsBest) {
  BestMetric best("eval/pass@1");
  EXPECT_TRUE(best.offer(row(0, 0.25)));
  EXPECT_TRUE(best.offer(row(2, 0.5)));
  EXPECT_FALSE(best.offer(row(4, 0.5)));
  EXPECT_FALSE(best.offer(row(6, 0.25)));
  EXPECT_FALSE(best.offer(row(7, std::nan(""))));
  ASSERT_TRUE(best.best());
  EXPECT_EQ(best.best()->step, 2u);
}

TEST(BestMetric, AMinusTurnsItRound) {
  BestMetric best("-eval/pass@1");
  EXPECT_TRUE(best.offer(row(0, 0.5)));
  EXPECT_FALSE(best.offer(row(1, 0.75)));
  EXPECT_TRUE(best.offer(row(2, -1)));
}

// As transformers does for a loss. Either sign decides where it stands.
TEST(BestMetric, OfALossAndItsLikeTheLowestIsBest) {
  for (const char* const lower :
       {"eval/loss", "eval/perplexity", "eval/truncated_rate", "eval/SET/missing",
        "eval/divergence", "-eval/accuracy", "-eval/loss"}) {
    BestMetric best(lower);
    EXPECT_TRUE(best.offer({0, 0, {{best.name(), 6.3}}})) << lower;
    EXPECT_FALSE(best.offer({1, 0, {{best.name(), 6.4}}})) << lower;
    EXPECT_TRUE(best.offer({2, 0, {{best.name(), 6.2}}})) << lower;
  }
  for (const char* const higher : {"eval/accuracy", "eval/margins", "eval/pass@4", "eval/reward",
                                   "eval/greedy", "+eval/loss"}) {
    BestMetric best(higher);
    EXPECT_TRUE(best.offer({0, 0, {{best.name(), 0.3}}})) << higher;
    EXPECT_FALSE(best.offer({1, 0, {{best.name(), 0.2}}})) << higher;
  }
}

TEST(BestMetric, AFigureThatNoEvaluationHasIsRefusedWithThoseThatThereAre) {
  BestMetric best("-eval/nope");
  EXPECT_TRUE(best.check()) << "there was no evaluation";
  best.offer({0, 0, {{"eval/loss", 1.0}, {"eval/perplexity", 2.7}, {"time/eval", 1.0}}});
  const auto refused = best.check();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kConfig);
  EXPECT_EQ(refused.error().message,
            "ckpt.best_metric_key: the evaluation has no figure eval/nope; it has eval/loss, "
            "eval/perplexity");
  BestMetric counts("eval/missing");
  counts.offer({0, 0, {{"eval/reward", 1.0}}});
  EXPECT_TRUE(counts.check()) << "nothing is missing";
}

TEST(BestMetric, OtherRowsAndNoKeyAreNothing) {
  EXPECT_FALSE(BestMetric("").offer(row(0, 1)));
  EXPECT_FALSE(BestMetric("eval/greedy").offer(row(0, 1)));
}

TEST(BestMetric, IsReadBackFromTheRecord) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("best-metric-" + std::to_string(::getpid()) + ".jsonl");
  std::ofstream(file) << metric_json(row(0, 0.25)) << "\n"
                      << metric_json(row(3, 0.75)) << "\n"
                      << metric_json(row(6, 0.5)) << "\n{\"step\": 9, \"eval/pass";
  BestMetric best("eval/pass@1");
  best.read(file);
  std::filesystem::remove(file);
  ASSERT_TRUE(best.best());
  EXPECT_EQ(best.best()->step, 3u);
  EXPECT_EQ(best.best()->value, 0.75);
  EXPECT_FALSE(best.offer(row(9, 0.75)));
  EXPECT_TRUE(best.offer(row(9, 0.76)));
}

}  // namespace
}  // namespace troupe::observe
