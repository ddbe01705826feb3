// Named sets of held-out prompts: written as a map or as items, with rewards of their own, and the
// mistakes that can be made in them.
#include "runtime/config/eval_sets.hpp"

#include "runtime/config/builder.hpp"
#include "runtime/config/read.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

constexpr const char* kRun = R"(
actor: {model_name_or_path: m}
data: {prompt_dataset: p.jsonl, label_key: answer}
reward: {judge: "http://h/v1", judge_rubric: r.yaml, deadline_s: 7}
)";

core::Result<TrainConfig> config_of(const std::string& more) {
  const auto settings = read_yaml(kRun + more, "run.yaml");
  if (!settings) return settings.failure();
  Builder builder(keys());
  TROUPE_TRY(builder.set_all(*settings));
  return builder.finish();
}

std::string refusal(const std::string& more) {
  const auto config = config_of(more);
  return config ? "" : config.error().message;
}

TEST(EvalSets, AMapOfSetsIsRead) {
  const auto config = config_of(R"(
eval:
  dataset: held.jsonl
  sets:
    sums: {dataset: sums.jsonl, rule: regex, rule_pattern: '(\d+), "x"', label_key: sum}
    chat:
      dataset: chat.jsonl
      judge: [http://a/v1, http://b/v1]
      judge_rubric: points.yaml
    plain: {dataset: more.jsonl}
)");
  ASSERT_TRUE(config) << config.error().message;
  const auto sets = eval_sets(*config);
  ASSERT_TRUE(sets) << sets.error().message;
  ASSERT_EQ(sets->size(), 4u);
  EXPECT_EQ((*sets)[0].name, "");
  EXPECT_EQ((*sets)[0].config.eval.dataset, "held.jsonl");
  EXPECT_FALSE((*sets)[0].own_rewards);
  const HeldOutSet& sums = (*sets)[1];
  EXPECT_EQ(sums.name, "sums");
  EXPECT_TRUE(sums.own_rewards);
  EXPECT_EQ(sums.config.eval.dataset, "sums.jsonl");
  EXPECT_EQ(sums.config.reward.rule, "regex");
  EXPECT_EQ(sums.config.reward.rule_pattern, R"((\d+), "x")");
  EXPECT_EQ(sums.config.data.label_key, "sum");
  EXPECT_TRUE(sums.config.reward.judge.empty()) << "the run's judge is not the set's";
  EXPECT_EQ(sums.config.reward.deadline_s, 7) << "patience is the run's";
  EXPECT_EQ((*sets)[2].config.reward.judge, (Texts{"http://a/v1", "http://b/v1"}));
  EXPECT_EQ((*sets)[2].config.data.label_key, "answer");
  EXPECT_FALSE((*sets)[3].own_rewards);
  EXPECT_EQ((*sets)[3].config.reward.judge, Texts{"http://h/v1"});
}

TEST(EvalSets, WhatIsWrittenDownIsReadAgain) {
  const auto config = config_of("eval: {sets: {a: {dataset: 'x,y.jsonl', rule: exact}}}\n");
  ASSERT_TRUE(config) << config.error().message;
  const std::string written = keys().find("eval.sets")->yaml(*config);
  const auto again = config_of("eval: {sets: " + written + "}\n");
  ASSERT_TRUE(again) << written << ": " << again.error().message;
  EXPECT_EQ(again->eval.sets, config->eval.sets);
  const auto flags =
      read_flags(keys(), std::vector<std::string>{"--eval.sets", "a: {dataset: x, rule: exact}",
                                                  "--eval.sets", "b: {dataset: y}"});
  ASSERT_EQ(flags.settings.size(), 1u);
  EXPECT_EQ(flags.settings[0].values.size(), 2u) << "commas belong to the set";
}

TEST(EvalSets, MistakesNameTheSet) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"{a: {rule: exact}}", "set a: has no dataset"},
      {"{a: x.jsonl}", "set a: expected {dataset: FILE, ...}"},
      {"{'a b': {dataset: x}}", "a set's name has"},
      {"{a: {dataset: x, rules: exact}}", "rules is not a key of a set"},
      {"{a: {dataset: x, rule: exakt}}", "did you mean 'exact'"},
      {"{a: {dataset: x, rule: [exact, regex]}}", "set a: eval.sets: reward.rule"},
      {"{a: {dataset: x, rule: {b: c}}}", "has no plain value"},
      {"{a: {dataset: x, rule: regex}}", "set a: reward.rule: regex needs --reward.rule_pattern"},
      {"{a: {dataset: x, judge: 'http://h'}}", "set a: reward.judge_rubric: is not set"},
      {"{a: {dataset: x, weights: [1, 2], rule: exact}}", "2 weights for 1 reward(s)"},
      {"{a: {dataset: x, deadline_s: 5}}", "set a: no reward"},
      {"['a: {dataset: x', 'b']", "is not valid YAML"},
      {"['a']", "is not NAME: {dataset: FILE, ...}"},
      {"['a: {dataset: x}', 'a: {dataset: y}']", "set a is given twice"}};
  for (const auto& [sets, why] : bad) {
    const std::string message = refusal("eval: {sets: " + sets + "}\n");
    EXPECT_NE(message.find(why), std::string::npos) << sets << " -> " << message;
  }
  EXPECT_NE(refusal("eval: {steps: 5}\n").find("--eval.sets"), std::string::npos);
}

TEST(EvalSets, AKeyIsNoPlaceForASecret) {
  const std::string message = refusal("reward: {judge_key: sk-0123}\n");
  EXPECT_FALSE(message.empty());
  const auto settings = read_yaml(std::string(kRun), "run.yaml");
  Builder builder(keys());
  ASSERT_TRUE(builder.set_all(*settings));
  ASSERT_TRUE(builder.set({"reward.judge_key", {"sk-0123"}, false, "the command line"}));
  const auto config = builder.finish();
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("env:NAME or file:PATH"), std::string::npos);
  EXPECT_EQ(config.error().message.find("sk-0123"), std::string::npos) << "nor is a message";
}

}  // namespace
}  // namespace troupe::config
