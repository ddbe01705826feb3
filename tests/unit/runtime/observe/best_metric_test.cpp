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
