// `troupe bench train` on a tiny random model: counts, keys and shares, no speeds.
#include "tests/integration/exact_support.hpp"
#include "tests/integration/processes.hpp"

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

// Of 5 sequences, from 4 to 20 tokens: 4 8 12 16 20. A row has its answer's rows but for the last.
TEST(BenchTrain, LengthsGoEvenlyFromTheShortest) {
  const ScratchFolder folder;
  const std::string model = make_tiny_model(folder);
  const auto line = [&](const std::string& objective, const std::string& shortest) {
    return run_troupe({"bench", "train", "--model", model, "--objective", objective, "--prompts",
                       "5", "--samples", "5", "--prompt-tokens", "7", "--new-tokens", "20",
                       "--shortest", shortest, "--threads", "2", "--json"});
  };
  const ProgramRun sft = line("sft", "4"), dpo = line("dpo", "4"), grpo = line("grpo", "4");
  ASSERT_TRUE(sft.line.is_object() && dpo.line.is_object() && grpo.line.is_object()) << sft.output;
  EXPECT_EQ(sft.line["tokens"], 60);
  EXPECT_EQ(sft.line["rows"], 55);
  // The first of five answers against each of the others; rows as if computed once.
  EXPECT_EQ(dpo.line["tokens"], 4 * 2 * (60 + 5 * 7));
  EXPECT_EQ(dpo.line["rows"], 5 * (7 + 55));
  EXPECT_EQ(grpo.line["tokens"], 5 * 60);
  EXPECT_EQ(grpo.line["rows"], 5 * (7 + 55));
  EXPECT_EQ(line("sft", "21").status, 2);
}

// The operations of a step with adapters, by hand: 4 for each weight and row, and 4 rank (rows +
// columns) for each map and row. A layer of the model has maps of 64 x 64 (q, o), 32 x 64 (k, v)
// and 160 x 64 (gate, up, down), 1120 rows and columns together.
TEST(BenchTrain, CountsTheProductsOfAdapters) {
  const ScratchFolder folder;
  const std::string model = make_tiny_model(folder);
  const auto line = [&](const std::string& objective, const std::string& rank) {
    const ProgramRun run =
        run_troupe({"bench", "train", "--model", model, "--objective", objective, "--prompts", "3",
                    "--prompt-tokens", "12", "--new-tokens", "20", "--threads", "2", "--dtype",
                    "bf16", "--lora", rank, "--json"});
    EXPECT_EQ(run.status, 0) << run.output;
    EXPECT_EQ(run.line.value("dtype", ""), "bf16");
    EXPECT_EQ(run.line.value("lora_rank", -1), std::stoi(rank));
    return run.line;
  };
  const auto flops = [](const nlohmann::ordered_json& figures) {
    return figures.value("gflops", 0.0) * 1e9 * figures.value("update_s", 0.0);
  };
  for (const char* objective : {"sft", "grpo", "dpo"}) {
    const nlohmann::ordered_json whole = line(objective, "0"), adapters = line(objective, "5");
    EXPECT_EQ(whole.contains("forward_s"), std::string(objective) == "grpo");
    EXPECT_FALSE(adapters.contains("forward_s"));
    const double rows = adapters.value("rows", 0.0);
    EXPECT_EQ(rows, whole.value("rows", -1.0));
    // With a reference 8 operations in place of 6, and 6 in place of 4.
    const bool reference = std::string(objective) == "dpo";
    const double of_weights = flops(whole) / (reference ? 8 : 6);
    const double expected = (reference ? 6 : 4) * of_weights + 4 * 5 * rows * 2 * 1120;
    EXPECT_NEAR(flops(adapters) / expected, 1, 1e-9) << objective;
  }
}

TEST(BenchTrain, APairNeedsTwoAnswers) {
  const ScratchFolder folder;
  const Ended ended = troupe_ends(
      {"bench", "train", "--model", make_tiny_model(folder), "--objective", "rm", "--samples", "1"},
      folder / "log.txt", 30);
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.text.find("--samples 1 with --objective rm: a pair needs 2"), std::string::npos)
      << ended.text;
}

TEST(BenchTrain, RefusesAnUnknownObjectiveAndDtypesThatDoNotTrain) {
  const ScratchFolder folder;
  const std::string model = make_tiny_model(folder);
  EXPECT_EQ(run_troupe({"bench", "train", "--model", model, "--objective", "dop"}).status, 2);
  for (const char* dtype : {"int8", "bf16-compute", "fp8"}) {
    const Ended ended =
        troupe_ends({"bench", "train", "--model", model, "--dtype", dtype}, folder / "log.txt", 30);
    EXPECT_EQ(ended.status, 2) << ended.text;
    for (const std::string& part : {std::string("--dtype ") + dtype, std::string("--device cuda")})
      EXPECT_NE(ended.text.find(part), std::string::npos) << part << " in " << ended.text;
  }
}

}  // namespace
}  // namespace troupe::test
