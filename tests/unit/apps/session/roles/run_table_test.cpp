// The table of keys as a run has it: with the words and rules of learning.
#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/builder.hpp"
#include "runtime/config/render.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace troupe::session {
namespace {

using config::Builder;

core::Result<void> set_key(Builder& builder, const std::string& name, const std::string& value) {
  return builder.set({name, {value}, false, "demo.yaml:4"});
}

std::string final_refusal(const Builder& builder) {
  const auto done = builder.finish();
  return done ? "accepted" : done.error().message;
}

Builder minimal_run() {
  Builder builder(run_table());
  for (const auto& [name, value] : {std::pair{"actor.model_name_or_path", "m"},
                                    {"data.prompt_dataset", "p.jsonl"},
                                    {"data.label_key", "answer"},
                                    {"reward.rule", "exact"}}) {
    EXPECT_TRUE(set_key(builder, name, value));
  }
  return builder;
}

TEST(RunTable, WordsOfLearningAreKnown) {
  Builder builder(run_table());
  EXPECT_EQ(
      set_key(builder, "algo.reducer", "gspo").error().message,
      "demo.yaml:4: algo.reducer = gspo: expected one of token_mean | sample_mean | constant");
  EXPECT_TRUE(set_key(builder, "algo.advantage.estimator", "gpro")
                  .error()
                  .message.ends_with("; did you mean 'grpo'?"));
  ASSERT_TRUE(set_key(builder, "algo.advantage.estimator", "grpo"));
  EXPECT_EQ(builder.current().algo.advantage.estimator, "group_norm");
}

TEST(RunTable, EveryChoiceHasWords) {
  for (const char* name : {"algo.objective", "algo.advantage.estimator", "algo.correction.type",
                           "algo.kl.estimator", "algo.reducer", "reward.clip_order"}) {
    const config::Row& row = *run_table().find(name);
    EXPECT_EQ(row.type_name(), "choice") << name;
    Builder builder(run_table());
    std::string value = row.yaml(builder.current());  // the default is one of them
    EXPECT_TRUE(set_key(builder, name, value.substr(1, value.size() - 2))) << name;
  }
}

TEST(RunTable, RulesOfObjectives) {
  const auto with = [](std::initializer_list<std::pair<const char*, const char*>> keys) {
    Builder builder = minimal_run();
    for (const auto& [name, value] : keys)
      EXPECT_TRUE(set_key(builder, name, value)) << name;
    return final_refusal(std::move(builder));
  };
  const auto says = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  says(with({{"algo.correction.type", "tis"}}), "would do it twice");
  EXPECT_EQ(with({{"algo.correction.type", "tis"}, {"algo.objective", "ppo"}}), "accepted");
  EXPECT_EQ(with({{"algo.correction.type", "m2po"}}), "accepted");
  says(with({{"algo.objective", "gspo"}}), "--algo.reducer sample_mean");
  EXPECT_EQ(with({{"algo.objective", "gspo"}, {"algo.reducer", "sample_mean"}}), "accepted");
  EXPECT_EQ(with({{"algo.objective", "online_dpo"}}), "accepted");
  says(with({{"algo.objective", "online_dpo"}, {"algo.advantage.estimator", "gae"}}),
       "compares no samples");
  says(with({{"algo.kl.per_sample", "true"}}), "--algo.kl.use_loss false");
  says(with({{"algo.advantage.gamma", "0.9"}}), "give 1");
  EXPECT_EQ(with({{"algo.advantage.estimator", "gae"}, {"rollout.n_samples_per_prompt", "1"}}),
            "accepted");
}

TEST(RunTable, ReferencePageIsCurrent) {
  const char* root = std::getenv("TROUPE_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "run by ctest";
  std::ifstream in(std::string(root) + "/docs/configuration.md");
  std::stringstream page;
  page << in.rdbuf();
  EXPECT_EQ(page.str(), config::reference_page(run_table()))
      << "run: build/troupe config docs > docs/configuration.md";
}

}  // namespace
}  // namespace troupe::session
