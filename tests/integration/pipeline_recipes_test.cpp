// Every pipeline of configs/pipelines through the real program, on a tiny model and few rows.
#include "pipeline_support.hpp"

namespace troupe::test {
namespace {

class PipelineRecipes : public ::testing::Test {
 protected:
  // `troupe pipeline FILE --set ...` to its end.
  Ended run(const std::string& file,
            const std::vector<std::string>& settings,
            const std::string& folder = "out") {
    std::vector<std::string> more;
    for (const std::string& setting : settings) {
      more.push_back("--set");
      more.push_back(setting);
    }
    return troupe_ends(files_.words(file, more, folder), files_ / "log.txt", 300);
  }
  void troupe(const std::vector<std::string>& words) {
    const Ended ended = troupe_ends(words, files_ / "log.txt", 120);
    ASSERT_EQ(ended.status, 0) << ended.text;
  }
  std::string model_in(const std::string& run) {
    for (const auto& entry : std::filesystem::directory_iterator(files_ / run / "ckpt")) {
      if (std::filesystem::exists(entry.path() / "model")) return (entry.path() / "model").string();
    }
    return "";
  }
  // A reward model with the mean and the deviation of its scores.
  std::string reward_model() {
    troupe({"train", "rm", "--actor.model_name_or_path", files_.model(), "--data.dataset",
            files_.path("pairs.jsonl"), "--eval.dataset", files_.path("pairs.jsonl"),
            "--data.prompt_key", "prompt", "--data.max_len", "64", "--train.batch_size", "2",
            "--train.max_steps", "1", "--run.path", files_.path("rm")});
    return model_in("rm");
  }
  // A model that is right now and then on the arithmetic task, so that there are pairs.
  std::string arithmetic_model(const std::string& digits, const std::string& prompt) {
    troupe({"data", "arithmetic", "--out", files_.path("task"), "--digits", digits});
    troupe({"train",
            "sft",
            "--actor.model_name_or_path",
            files_.model(),
            "--data.dataset",
            files_.path("task/train.jsonl"),
            "--data.input_key",
            prompt,
            "--data.output_key",
            "target",
            "--data.max_len",
            "64",
            "--data.max_samples",
            "400",
            "--train.batch_size",
            "16",
            "--train.max_epochs",
            "8",
            "--train.max_steps",
            "100",
            "--actor.adam.lr",
            "1e-2",
            "--run.path",
            files_.path("first")});
    return model_in("first");
  }
  std::vector<std::string> loop(std::vector<std::string> more) {
    std::vector<std::string> out = {"model=" + files_.model(),
                                    "reward_model=" + reward_model(),
                                    "prompts=" + files_.path("train.jsonl"),
                                    "n=4",
                                    "max_new_tokens=6",
                                    "max_len=64",
                                    "batch_size=8",
                                    "lr=1e-3"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  TinyPipeline files_;
};

}  // namespace

TEST_F(PipelineRecipes, RejectionSampling) {
  const Ended ended = run("rejection_sampling.yaml", loop({"rounds=2"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(files_.summary()["stages"].size(), 6u);
  EXPECT_EQ(lines_in(files_ / "out/round-1/best/out.jsonl"), 24u) << "one row a prompt";
  const auto command = files_.record("round-2/answers")["command"];
  EXPECT_NE(command[2].get<std::string>().find("out/round-1/sft/run/ckpt"), std::string::npos)
      << command;
  EXPECT_NE(files_.weights("round-1/sft"), files_.weights("round-2/sft"));
}

TEST_F(PipelineRecipes, IterativeDpo) {
  const Ended ended = run("iterative_dpo.yaml", loop({"rounds=2"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto stages = files_.summary()["stages"];
  ASSERT_EQ(stages.size(), 6u);
  EXPECT_TRUE(stages[5]["figures"]["accuracy"]["mean"].is_number()) << stages[5];
  EXPECT_GT(lines_in(files_ / "out/round-2/pairs/out.jsonl"), 0u);
}

TEST_F(PipelineRecipes, ConditionalSft) {
  const Ended ended = run("conditional_sft.yaml",
                          loop({"pattern=[A-Za-z]", "wanted={} <quality>: 1.0 <form>: 1 "}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  std::ifstream in(files_ / "out/conditional/out.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  const auto row = nlohmann::json::parse(line, nullptr, false);
  char expected[80];
  std::snprintf(expected, sizeof expected, "0+0= <quality>: %.1f <form>: %.0f ",
                row["quality"].get<double>(), row["form"].get<double>());
  EXPECT_EQ(row["prompt"], expected);
  EXPECT_NE(text_of(files_ / "out/good/out.jsonl").find("<quality>: 1.0 <form>: 1 "),
            std::string::npos)
      << "the prompt that asks for good answers";
}

TEST_F(PipelineRecipes, Tour) {
  const Ended ended =
      run("tour.yaml", {"model=" + arithmetic_model("1", "prompt"), "samples=8", "eval_samples=2",
                        "sft_epochs=1", "rm_epochs=1", "dpo_epochs=1", "updates=3"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto stages = files_.summary()["stages"];
  EXPECT_EQ(stages.size(), 21u);
  const auto& last = stages.back();
  EXPECT_EQ(last["stage"], "eval_kto");
  for (const char* column : {"truth", "against SFT", "reward model", "pass@n"})
    EXPECT_TRUE(last["figures"][column]["low"].is_number()) << column << last;
}

// The whole of it, with two seeds: searched once, equal steps for equal seconds, two rounds.
TEST_F(PipelineRecipes, Paper) {
  const Ended ended =
      run("paper.yaml",
          {"model=" + arithmetic_model("2", "question"), "seeds=1,2", "held_out=40", "valid=20",
           "sft_rows=64", "asked=120", "samples=8", "sft_epochs=1", "rm_epochs=1",
           "search_updates=3", "search_steps=2", "budget_s=1", "eval_samples=2"});
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
