// Every pipeline of configs/pipelines through the real program, on a tiny model and few rows.
#include "pipeline_support.hpp"

namespace troupe::test {
TEST_F(PipelineRecipes, RejectionSampling) {
  const Ended ended = run("rejection_sampling.yaml", loop({"rounds=2"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(files_.summary()["stages"].size(), 6u);
  EXPECT_EQ(lines_in(files_ / "out/round-1/best/out.jsonl"), 24u) << "one row a prompt";
  const auto command = files_.record("round-2/answers")["command"];
  EXPECT_NE(command[2].get<std::string>().find("round-1/sft/run/ckpt"), std::string::npos)
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

}  // namespace troupe::test
