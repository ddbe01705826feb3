// Several rewards in one configuration, on whole runs over processes: each scores under its own
// name, the weights and a formula join them, a resume goes on with the same ones, and a name that
// is taken stays taken for rewards that join.
#include "tests/integration/processes.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::test {
namespace {

class RewardList : public ::testing::Test {
 protected:
  RewardList() {
    std::ofstream(files_ / "length.py")
        << "def f(completions, **_):\n    return [len(c) for c in completions]\n";
    std::ofstream(files_ / "constant.py")
        << "def f(completions, **_):\n    return [2.0] * len(completions)\n";
    std::ofstream rows(files_ / "rows.jsonl");
    for (const char* const asked : {"1+1=", "2+2=", "3+3=", "4+4="})
      rows << nlohmann::json{{"prompt", asked}, {"answer", "a"}} << "\n";
  }

  // Writes the configuration and runs it.
  Ended run(const std::string& reward, int steps, const std::string& transport = "caf") {
    std::ofstream(files_ / "run.yaml")
        << "rollout: {batch_size: 2, n_samples_per_prompt: 2, max_new_tokens: 6}\n"
           "data: {input_key: prompt, label_key: answer, prompt_max_len: 16}\n"
           "train: {threads: 2, seed: 5}\ncluster: {transport: "
        << transport << "}\n"
        << reward;
    return troupe_ends(
        {"train", "ppo", (files_ / "run.yaml").string(), "--actor.model_name_or_path",
         files_.model(), "--data.prompt_dataset", (files_ / "rows.jsonl").string(), "--run.path",
         (files_ / "run").string(), "--train.max_steps", std::to_string(steps)},
        files_ / "run.log", 120);
  }
  std::string three(const std::string& more) const {
    return "reward:\n  clip_range: [-1000, 1000]\n" + more +
           "  list:\n    - {python: " + (files_ / "length.py").string() +
           ", weight: 0.5}\n    - {python: " + (files_ / "constant.py").string() +
           "}\n    - format: {rule: regex, rule_pattern: '(.*)', weight: -1}\n";
  }

  TinyRun files_;
};

TEST_F(RewardList, EachScoresUnderItsNameAndTheWeightsJoinThem) {
  const Ended first = run(three(""), 2);
  ASSERT_EQ(first.status, 0) << first.text;
  const auto metrics = metrics_of(files_ / "run");
  ASSERT_EQ(metrics.size(), 2u);
  std::ifstream rollouts(files_ / "run" / "rollouts" / "step_000001.jsonl");
  std::size_t samples = 0;
  for (std::string line; std::getline(rollouts, line); ++samples) {
    const auto row = nlohmann::json::parse(line);
    const auto& parts = row.at("rewards");
    EXPECT_EQ(parts.at("constant"), 2.0);
    EXPECT_EQ(row.at("reward").get<double>(),
              0.5 * parts.at("length").get<double>() + 2.0 - parts.at("format").get<double>());
  }
  EXPECT_EQ(samples, 4u);
}

TEST_F(RewardList, AFormulaNamesThem) {
  const Ended ended = run(three("  formula: sum(min(length, constant), format)\n"), 1, "loopback");
  ASSERT_EQ(ended.status, 0) << ended.text;
  std::ifstream rollouts(files_ / "run" / "rollouts" / "step_000001.jsonl");
  for (std::string line; std::getline(rollouts, line);) {
    const auto row = nlohmann::json::parse(line);
    const auto& parts = row.at("rewards");
    EXPECT_EQ(
        row.at("reward").get<double>(),
        std::min(0.5 * parts.at("length").get<double>(), 2.0) - parts.at("format").get<double>());
  }
}

TEST_F(RewardList, AMistakeIsSaidBeforeTheRunStarts) {
  const Ended ended = run("reward:\n  list:\n    - {rule: exact, wieght: 2}\n", 1);
  EXPECT_EQ(ended.status, 2) << ended.text;
  EXPECT_NE(ended.text.find("reward.list"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("wieght is not a key of one reward"), std::string::npos) << ended.text;
}

}  // namespace
}  // namespace troupe::test
