// The paired difference of two evaluations, by hand, and files that cannot be one.
#include "apps/troupe/batch/baseline.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace troupe::app {
namespace {

class Baselines : public ::testing::Test {
 protected:
  Baselines()
      : file_(std::filesystem::temp_directory_path() /
              ("troupe_baseline_" + std::to_string(::getpid()) + ".jsonl")) {}
  ~Baselines() override { std::filesystem::remove(file_); }
  core::Result<Baseline> read(const std::string& text) {
    std::ofstream(file_, std::ios::binary) << text;
    return read_baseline(file_, "prompt");
  }
  static session::EvalProblem problem(std::vector<double> scores, std::vector<double> rated = {}) {
    session::EvalProblem out;
    out.scores = std::move(scores);
    out.rated = std::move(rated);
    return out;
  }

  std::filesystem::path file_;
};

constexpr const char* kBaselineRows =
    "{\"prompt\":\"a\",\"prompt_id\":0,\"sample\":0,\"reward\":1,\"reward_model\":2}\n"
    "{\"prompt\":\"a\",\"prompt_id\":0,\"sample\":1,\"reward\":0,\"reward_model\":4}\n"
    "{\"prompt\":\"b\",\"prompt_id\":1,\"sample\":0,\"reward\":1,\"reward_model\":1}\n";

TEST_F(Baselines, DifferencesArePairedByProblem) {
  const auto base = read(kBaselineRows);
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_EQ(base->rewards, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(base->rated, (std::vector<double>{3, 1}));
  // Problem a: (1 + 1) / 2 - 0.5 = 0.5; b: 0.25 - 1 = -0.75. Mean -0.125.
  const auto figures =
      differences({problem({1, 1}, {3, 4}), problem({0, 0, 0, 1}, {2})}, {"\"a\"", "\"b\""}, *base);
  ASSERT_TRUE(figures) << figures.error().message;
  ASSERT_EQ(figures->size(), 2u);
  EXPECT_EQ((*figures)[0].name, "reward_difference");
  EXPECT_EQ((*figures)[0].value.mean, -0.125);
  EXPECT_EQ((*figures)[0].value.low, -0.75);
  EXPECT_EQ((*figures)[0].value.high, 0.5);
  EXPECT_EQ((*figures)[1].value.mean, 0.75);  // 3.5 - 3 and 2 - 1
}

TEST_F(Baselines, AConstantDifferenceHasNoWidth) {
  std::string rows;
  std::vector<session::EvalProblem> problems;
  std::vector<std::string> prompts;
  for (int i = 0; i < 50; ++i) {
    rows += "{\"prompt\":\"" + std::to_string(i) + "\",\"prompt_id\":" + std::to_string(i) +
            ",\"reward\":" + std::to_string(i % 7) + "}\n";
    problems.push_back(problem({i % 7 + 0.25}));
    prompts.push_back("\"" + std::to_string(i) + "\"");
  }
  const auto base = read(rows);
  ASSERT_TRUE(base);
  const auto figures = differences(problems, prompts, *base);
  ASSERT_TRUE(figures);
  ASSERT_EQ(figures->size(), 1u) << "no scores of a reward model";
  EXPECT_EQ((*figures)[0].value.low, 0.25) << "the spread of problems does not count";
  EXPECT_EQ((*figures)[0].value.high, 0.25);
}

TEST_F(Baselines, FilesThatAreNoneAreRefused) {
  const auto refused = [&](const std::string& text, const std::string& part) {
    const auto base = read(text);
    ASSERT_FALSE(base);
    EXPECT_NE(base.error().message.find(part), std::string::npos) << base.error().message;
  };
  refused("nonsense\n", ":1: no row with prompt_id, reward and 'prompt'");
  refused("{\"prompt\":\"a\",\"prompt_id\":0}\n", ":1: no row with");
  refused("{\"prompt\":\"a\",\"prompt_id\":1,\"reward\":1}\n", ":1: its problems are not in order");
  refused(
      "{\"prompt\":\"a\",\"prompt_id\":0,\"reward\":1}\n"
      "{\"prompt\":\"b\",\"prompt_id\":0,\"reward\":1}\n",
      ":2: its problems are not in order");
  EXPECT_NE(read_baseline("/nowhere", "prompt").error().message.find("cannot read /nowhere"),
            std::string::npos);
  const auto base = read(kBaselineRows);
  ASSERT_TRUE(base);
  const auto other = differences({problem({1})}, {"\"a\""}, *base);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("evaluate both models on the same file"), std::string::npos);
}

}  // namespace
}  // namespace troupe::app
