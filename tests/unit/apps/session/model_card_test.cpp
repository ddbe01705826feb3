// The card of a run's models: base, data, method, settings and scores, and no path of this machine.
#include "apps/session/model_card.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'c');

config::TrainConfig configuration() {
  config::TrainConfig config;
  config.method = config::method_named("dpo");
  config.actor.model_name_or_path = "org/base@" + kCommit;
  config.data.dataset = "org/rows:main,/home/me/secret/pairs.jsonl";
  return config;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

TEST(ModelCard, NamesBaseDataMethodAndScores) {
  const config::TrainConfig config = configuration();
  ModelCard card(config);
  card.offer({3, 0, {{"policy/loss", 0.5}, {"eval/loss", 0.25}, {"perf/tokens_per_s", 9}}});
  card.offer(
      {4, 0, {{"policy/loss", 0.125}, {"eval/acc", std::numeric_limits<double>::quiet_NaN()}}});
  const std::string text = card.text(4, false);
  EXPECT_EQ(text.substr(0, 4), "---\n");
  EXPECT_TRUE(has(text,
                  "library_name: transformers\nbase_model: \"org/base\"\n"
                  "base_model_relation: finetune\ndatasets:\n- \"org/rows\"\n"
                  "tags:\n- troupe\n- dpo\n---\n"))
      << text;
  EXPECT_TRUE(has(text, "| base model | org/base@" + kCommit + " |\n"));
  EXPECT_TRUE(has(text, "| data | org/rows:main, pairs.jsonl |\n"));
  EXPECT_TRUE(has(text, "after 4 updates of `troupe train dpo`"));
  EXPECT_TRUE(has(text, "| `policy/loss` | 0.125 | 4 |\n"));
  EXPECT_TRUE(has(text, "| `eval/loss` | 0.25 | 3 |\n"));
  EXPECT_TRUE(has(text, "| `dpo.loss` | "));
  EXPECT_FALSE(has(text, "secret"));
  EXPECT_FALSE(has(text, "perf/"));
  EXPECT_FALSE(has(text, "eval/acc"));
  EXPECT_FALSE(has(text, "algo."));  // of another method
  EXPECT_TRUE(has(card.text(4, true), "library_name: peft\n"));
  EXPECT_TRUE(has(card.text(4, true), "base_model_relation: adapter\n"));
}

TEST(ModelCard, ABaseOnThisMachineIsItsFolder) {
  config::TrainConfig config = configuration();
  config.actor.model_name_or_path = "/home/me/mo|dels\n/";
  const std::string text = ModelCard(config).text(1, false);
  EXPECT_TRUE(has(text, "# mo dels , trained by dpo\n")) << text;
  EXPECT_FALSE(has(text, "/home/me"));
  EXPECT_FALSE(has(text, "base_model:"));
}

TEST(ModelCard, KnowsWhatTheRunMeasuredBeforeAndStandsBesideEachModel) {
  const fs::path folder = fs::path(testing::TempDir()) / ("card_" + std::to_string(::getpid()));
  fs::create_directories(folder / "model");
  fs::create_directories(folder / "adapter");
  fs::create_directories(folder / "policy");
  std::ofstream(folder / "model/config.json") << "{}";
  std::ofstream(folder / "adapter/adapter_config.json") << "{}";
  std::ofstream(folder / "metrics.jsonl") << "{\"step\": 2, \"eval/loss\": 0.5}\nnonsense\n[]\n"
                                          << "{\"step\": 3, \"eval/loss\": \"nan\"}\n";
  const config::TrainConfig config = configuration();
  ModelCard card(config);
  card.read(folder / "metrics.jsonl");
  EXPECT_TRUE(has(card.text(3, false), "| `eval/loss` | 0.5 | 2 |\n"));
  ASSERT_TRUE(write_cards(folder, "of a model", "of an adapter"));
  std::stringstream model, adapter;
  model << std::ifstream(folder / "model/README.md").rdbuf();
  adapter << std::ifstream(folder / "adapter/README.md").rdbuf();
  EXPECT_EQ(model.str(), "of a model");
  EXPECT_EQ(adapter.str(), "of an adapter");
  EXPECT_FALSE(fs::exists(folder / "policy/README.md"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace troupe::session
