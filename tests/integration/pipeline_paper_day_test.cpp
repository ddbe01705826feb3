// configs/pipelines/paper.yaml as a whole, on a tiny model: some 60 stages.
#include "pipeline_support.hpp"

namespace troupe::test {

class PaperPipeline : public PipelineRecipes {};

// The whole of it, with two seeds: searched once, equal steps for equal seconds, two rounds.
TEST_F(PaperPipeline, RunsFromEndToEnd) {
  const Ended ended =
      run("paper.yaml", {"shape=tiny", "seeds=1,2", "held_out=120", "valid=120", "sft_epochs=4",
                         "sft_lr=1e-2", "asked=400", "samples=8", "rm_epochs=1", "rm2_epochs=1",
                         "search_updates=3", "search_steps=2", "budget_s=5", "eval_samples=2"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto summary = files_.summary();
  EXPECT_EQ(summary["searches"].size(), 2u) << "searched on the first seed alone";
  EXPECT_EQ(summary["searches"][0]["search"], "seed-1/ppo_grid");
  std::map<std::string, nlohmann::json> stages;
  for (const auto& stage : summary["stages"])
    stages[stage["stage"]] = stage;
  for (const std::string seed : {"seed-1", "seed-2"}) {
    for (const char* model : {"/eval_ppo", "/eval_dpo", "/eval_ppo2"})
      EXPECT_TRUE(stages[seed + model]["figures"]["against SFT"]["low"].is_number())
          << seed << model;
    EXPECT_TRUE(stages[seed + "/rm_accuracy"]["figures"]["pairs right"]["mean"].is_number());
    EXPECT_TRUE(std::filesystem::exists(files_ / "out" / seed / "pictures/out.html"));
    const std::string metrics = text_of(files_ / "out" / seed / "ppo/run/metrics.jsonl");
    EXPECT_NE(metrics.find("\"reward/exact\""), std::string::npos) << "the truth beside the proxy";
  }
  EXPECT_FALSE(stages.contains("seed-2/ppo_grid/point-1/ppo_try"));
}

}  // namespace troupe::test
