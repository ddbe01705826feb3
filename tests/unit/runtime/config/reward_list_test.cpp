// Several rewards in one configuration: written as a map, as a list or as flags, each with a name
// and a weight, and the mistakes that can be made in them.
#include "runtime/config/reward_list.hpp"

#include "runtime/config/builder.hpp"
#include "runtime/config/read.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

core::Result<TrainConfig> run_with(const std::string& reward) {
  const auto settings = read_yaml(
      "actor: {model_name_or_path: m}\ndata: {prompt_dataset: p.jsonl, label_key: answer}\n" +
          reward + "\n",
      "run.yaml");
  if (!settings) return settings.failure();
  Builder builder(keys());
  TROUPE_TRY(builder.set_all(*settings));
  return builder.finish();
}

std::vector<ListedReward> rewards_of_run(const std::string& reward) {
  const auto config = run_with(reward);
  EXPECT_TRUE(config) << config.error().message;
  if (!config) return {};
  auto rewards = listed_rewards(*config);
  EXPECT_TRUE(rewards) << rewards.error().message;
  return rewards ? std::move(*rewards) : std::vector<ListedReward>();
}

TEST(RewardList, AMapOfRewardsIsRead) {
  const auto rewards = rewards_of_run(R"(
reward:
  deadline_s: 7
  workers: 2
  formula: accuracy + 0.5 * format
  list:
    accuracy: {rule: math}
    format: {rule: regex, rule_pattern: '<think>.*, "x"</think>', weight: 0.5}
    mine: {python: rewards/mine.py, weight: -1}
    far: {http: [http://a/r, http://b/r]}
    rm: {model_name_or_path: models/rm}
    steps:
      process.model_name_or_path: models/prm
      process.reduce: min
)");
  ASSERT_EQ(rewards.size(), 6u);
  EXPECT_EQ(rewards[0].name, "accuracy");
  EXPECT_EQ(rewards[0].weight, 1);
  EXPECT_EQ(rewards[0].config.reward.rule, "math");
  EXPECT_EQ(rewards[0].config.reward.workers, 2) << "processes are the run's";
  EXPECT_EQ(rewards[0].config.reward.deadline_s, 7);
  EXPECT_TRUE(rewards[0].config.reward.list.empty());
  EXPECT_TRUE(rewards[0].config.reward.formula.empty()) << "the formula is the run's";
  EXPECT_EQ(rewards[1].weight, 0.5);
  EXPECT_EQ(rewards[1].config.reward.rule_pattern, R"(<think>.*, "x"</think>)");
  EXPECT_EQ(rewards[2].config.reward.python, "rewards/mine.py");
  EXPECT_EQ(rewards[2].weight, -1);
  EXPECT_EQ(rewards[3].config.reward.http, (Texts{"http://a/r", "http://b/r"}));
  EXPECT_EQ(rewards[4].config.reward.model_name_or_path, Texts{"models/rm"});
  EXPECT_EQ(rewards[5].config.reward.process.reduce, "min");
}

TEST(RewardList, AnItemWithoutANameHasThatOfItsReward) {
  const auto rewards = rewards_of_run(R"(
reward:
  list:
    - {rule: math}
    - rule: regex
      rule_pattern: x
      name: form
    - {python: rewards/mine.py}
    - {model_name_or_path: models/rm/}
    - other: {rule: exact}
)");
  std::vector<std::string> names;
  for (const ListedReward& reward : rewards)
    names.push_back(reward.name);
  EXPECT_EQ(names, (std::vector<std::string>{"math", "form", "mine", "rm", "other"}));
}

TEST(RewardList, WhatIsWrittenDownIsReadAgain) {
  const auto config =
      run_with("reward: {list: [{rule: regex, rule_pattern: 'a, b'}, {python: x.py, weight: 2}]}");
  ASSERT_TRUE(config) << config.error().message;
  const std::string written = keys().find("reward.list")->yaml(*config);
  const auto again = run_with("reward: {list: " + written + "}");
  ASSERT_TRUE(again) << written << ": " << again.error().message;
  EXPECT_EQ(again->reward.list, config->reward.list);
}

TEST(RewardList, MistakesNameTheItem) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"{a: {weight: 2}}", "reward a: names no reward"},
      {"{a: {rule: exact, python: x.py}}", "reward a: names several rewards"},
      {"{a: {model_name_or_path: [x, y]}}", "reward a: names several rewards"},
      {"{a: {rules: exact}}", "rules is not a key of one reward"},
      {"{a: {rule: exact, formula: a}}", "formula is not a key of one reward"},
      {"{a: {rule: exact, weights: [1]}}", "weights is not a key of one reward"},
      {"{a: {rule: exact, list: [b]}}", "list is not a key of one reward"},
      {"{a: {rule: exakt}}", "did you mean 'exact'"},
      {"{a: {rule: exact, weight: much}}", "reward a: weight: expected a number"},
      {"{a: {rule: exact, weight: .nan}}", "reward a: weight: expected a number"},
      {"{a: {rule: regex}}", "reward a: reward.rule: regex needs --reward.rule_pattern"},
      {"{'a b': {rule: exact}}", "'a b' is no name of a reward"},
      {"[{rule: exact}, {rule: exact}]", "reward exact is given twice"},
      {"['x']", "is not NAME: {rule: ..., weight: ...}"},
      {"['a: {rule: exact']", "is not valid YAML"}};
  for (const auto& [list, why] : bad) {
    const auto config = run_with("reward: {list: " + list + "}");
    ASSERT_FALSE(config) << list;
    EXPECT_NE(config.error().message.find(why), std::string::npos)
        << list << " -> " << config.error().message;
  }
}

TEST(RewardList, StandsAlone) {
  const std::string list = "list: {a: {rule: exact}}";
  for (const std::string other : {"rule: exact", "python: x.py", "http: http://a/r",
                                  "model_name_or_path: m", "weights: [1]"}) {
    const auto config = run_with("reward: {" + list + ", " + other + "}");
    ASSERT_FALSE(config) << other;
    EXPECT_NE(config.error().message.find("reward.list"), std::string::npos)
        << config.error().message;
  }
}

}  // namespace
}  // namespace troupe::config
