// Names of other trainers, and that the page about them is current.
#include "runtime/observe/metric_names.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace troupe::observe {
namespace {

TEST(MetricNames, OnlyKnownFiguresAreRenamed) {
  EXPECT_EQ(metric_name("policy/loss", "ours"), "policy/loss");
  EXPECT_EQ(metric_name("policy/loss", "openrlhf"), "train/policy_loss");
  EXPECT_EQ(metric_name("reward/mean", "trl"), "train/reward");
  EXPECT_EQ(metric_name("reward/mean", "verl"), "critic/score/mean");
  EXPECT_EQ(metric_name("async/queue", "verl"), "async/queue");
  EXPECT_EQ(metric_name("kl/old", "trl"), "kl/old") << "TRL has none";
}

TEST(MetricNames, NoRunWritesTwoFiguresUnderOneName) {
  std::set<std::string_view> ours;
  for (const MetricNames& row : metric_names())
    EXPECT_TRUE(ours.insert(row.ours).second) << row.ours;
  for (const char* style : {"openrlhf", "trl", "verl"}) {
    std::set<std::string> theirs;
    for (const MetricNames& row : metric_names()) {
      EXPECT_TRUE(theirs.insert(metric_name(row.ours, style)).second) << style << " " << row.ours;
    }
  }
}

TEST(MetricNames, ThePageHasTheTable) {
  const char* root = std::getenv("TROUPE_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "run by ctest";
  std::ifstream in(std::string(root) + "/docs/metrics.md");
  std::stringstream page;
  page << in.rdbuf();
  const auto cell = [](std::string_view name) {
    return name.empty() ? std::string() : "`" + std::string(name) + "`";
  };
  for (const MetricNames& row : metric_names()) {
    const std::string line = "| " + cell(row.ours) + " | " + cell(row.openrlhf) + " | " +
                             cell(row.trl) + " | " + cell(row.verl) + " |\n";
    EXPECT_NE(page.str().find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace troupe::observe
