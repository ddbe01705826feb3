// `troupe bench train` on a tiny random model: counts, keys and shares, no speeds.
#include "tests/integration/exact_support.hpp"

namespace troupe::test {
namespace {

TEST(BenchTrain, ReportsTheUpdateThatItWasAskedFor) {
  const ScratchFolder folder;
  const ProgramRun run =
      run_troupe({"bench", "train", "--model", make_tiny_model(folder), "--objective", "grpo",
                  "--prompts", "3", "--samples", "4", "--prompt-tokens", "20", "--new-tokens", "9",
                  "--micro-tokens-max", "60", "--threads", "2", "--json"});
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.line["tokens"], 3 * 4 * 9);
  EXPECT_EQ(run.line["micro_batches"], 3);  // 20 + 4 * 8 rows each
  EXPECT_EQ(run.line["rows"], 3 * (20 + 4 * 8));
  for (const char* key : {"tokens_per_s", "share_of_fma", "peak_mb", "forward_s", "backward_s",
                          "optimizer_s", "fma_gflops"}) {
    EXPECT_GT(run.line[key], 0.0) << key;
  }
  EXPECT_LE(run.line["share_of_fma"], 1.0);
}

TEST(BenchTrain, CountsTokensOfSequencesAndPairsAsTrainersDo) {
  const ScratchFolder folder;
  const std::string model = make_tiny_model(folder);
  const auto tokens = [&](const std::string& objective) -> std::int64_t {
    const ProgramRun run =
        run_troupe({"bench", "train", "--model", model, "--objective", objective, "--prompts", "3",
                    "--prompt-tokens", "12", "--new-tokens", "20", "--threads", "2", "--json"});
    EXPECT_EQ(run.status, 0) << run.output;
    if (!run.line.is_object()) return -1;
    EXPECT_GT(run.line["share_of_fma"], 0.0) << objective;
    return run.line["tokens"];
  };
  EXPECT_EQ(tokens("sft"), 3 * 20);
  EXPECT_EQ(tokens("dpo"), 3 * 2 * (12 + 20));
  EXPECT_EQ(tokens("rm"), 3 * 2 * (12 + 20));
  EXPECT_EQ(tokens("ppo"), 3 * 20);
}

TEST(BenchTrain, RefusesAnUnknownObjective) {
  const ScratchFolder folder;
  EXPECT_EQ(run_troupe({"bench", "train", "--model", make_tiny_model(folder), "--objective", "dop"})
                .status,
            2);
}

}  // namespace
}  // namespace troupe::test
