// Whole runs of the real program on tiny random models of the newer dense families: supervised
// steps and GRPO, exact to the bit, and the folder that is left loads again.
#include "processes.hpp"
#include "runtime/model/spec.hpp"

#include <cstring>

namespace troupe::test {
namespace {

struct FamilyRun {
  const char* name;
  const char* architecture;
  const char* keys;  // of config.json, beside the common ones
};

// Windows shorter than what is trained and written; for Gemma 3 one layer that sees everything and
// a tied head, for Phi-3 fused tensors and long factors for a part of a head.
const FamilyRun kRuns[] = {
    {"qwen3", "Qwen3ForCausalLM", R"("head_dim": 14)"},
    {"mistral", "MistralForCausalLM", R"("head_dim": 20, "sliding_window": 4)"},
    {"phi3", "Phi3ForCausalLM", R"("sliding_window": 5, "partial_rotary_factor": 0.5,
        "original_max_position_embeddings": 64, "rope_scaling": {"rope_type": "longrope",
        "short_factor": [1, 1.1, 1.2, 1.3], "long_factor": [1, 2, 4.5, 9]})"},
    {"gemma3", "Gemma3ForCausalLM", R"("head_dim": 18, "query_pre_attn_scalar": 18,
        "sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"],
        "final_logit_softcapping": 6.0)"},
};

model::ModelSpec spec_of(const FamilyRun& run) {
  const std::string config = R"({"architectures": [")" + std::string(run.architecture) +
                             R"("], "hidden_size": 64,
         "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 257, "num_hidden_layers": 2, "max_position_embeddings": 256,
         "eos_token_id": 2, )" +
                             run.keys + "}";
  auto spec = model::parse_spec(config, run.name);
  EXPECT_TRUE(spec) << spec.error().message;
  return spec ? *spec : model::ModelSpec{};
}

// What a checkpoint holds loads, is not what the run began with, and is written again as the same
// bytes.
void expect_loads_again(const TinyRun& files, const std::filesystem::path& saved) {
  auto params = model::load_model(saved);
  ASSERT_TRUE(params) << params.error().message;
  const auto again = files / "again";
  const auto written = model::save_model(**params, again, model::StorageDtype::kF32, {});
  ASSERT_TRUE(written) << written.error().message;
  for (const char* file : {"config.json", "model.safetensors"})
    EXPECT_EQ(text_of(again / file), text_of(saved / file)) << file;
  EXPECT_NE(text_of(again / "model.safetensors"),
            text_of(std::filesystem::path(files.model()) / "model.safetensors"));
}

std::size_t longrope_lines(const std::string& output) {
  const auto first = output.find("longrope: the long factors turn all positions");
  if (first == output.npos) return 0;
  return output.find("longrope: ", first + 1) == output.npos ? 1 : 2;
}

class DenseFamilies : public testing::TestWithParam<FamilyRun> {};

TEST_P(DenseFamilies, TakeSupervisedSteps) {
  const TinyRun files(spec_of(GetParam()));
  std::ofstream answers(files / "answers.jsonl");
  for (int i = 0; i < 12; ++i) {
    answers << nlohmann::json({{"input", std::to_string(i) + "+1="}, {"output", "is so and so"}})
            << '\n';
  }
  answers.close();
  const ProgramRun run =
      run_troupe({"train", "sft", "--actor.model_name_or_path", files.model(), "--data.dataset",
                  (files / "answers.jsonl").string(), "--run.path", (files / "sft").string(),
                  "--train.batch_size", "4", "--train.threads", "2", "--train.max_steps", "3",
                  "--actor.adam.lr", "1e-3"});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(longrope_lines(run.output), GetParam().name == std::string("phi3") ? 1u : 0u)
      << run.output;
  const auto rows = metrics_of(files / "sft");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_LT(rows.at(3).value("policy/loss", 0.0), rows.at(1).value("policy/loss", 0.0));
  expect_loads_again(files, files / "sft" / "ckpt" / "step_000003" / "model");
}

TEST(Longrope, GenerateSaysWhichFactorsItUsesAndTakesTheChoice) {
  const TinyRun files(spec_of(kRuns[2]));
  const std::vector<std::string> words = {"generate", "--model",   files.model(),
                                          "--prompt", "1+1=",      "--max-new-tokens",
                                          "3",        "--threads", "1"};
  const auto said = [&](const char* log) {
    const Ended run = troupe_ends(words, files / log, 60);
    EXPECT_EQ(run.status, 0);
    return run.text;
  };
  const std::string by_default = said("long.log");
  EXPECT_EQ(longrope_lines(by_default), 1u) << by_default;
  const auto path = std::filesystem::path(files.model()) / "config.json";
  auto config = nlohmann::json::parse(text_of(path));
  config["longrope_factors"] = "short";
  std::ofstream(path) << config.dump();
  const std::string chosen = said("short.log");
  EXPECT_NE(chosen.find("the short factors turn all positions and the context ends at 64"),
            std::string::npos)
      << chosen;
}

TEST_P(DenseFamilies, LearnByGrpoExactToTheBit) {
  const TinyRun files(spec_of(GetParam()));
  std::vector<std::string> words = files.words("grpo");
  for (const char* word : {"--train.max_steps", "3", "--algo.advantage.estimator", "group_norm"})
    words.push_back(word);
  const ProgramRun run = run_troupe(words);
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(longrope_lines(run.output), GetParam().name == std::string("phi3") ? 1u : 0u)
      << run.output;
  const auto rows = metrics_of(files / "grpo");
  ASSERT_EQ(rows.size(), 3u);
  double moved = 0;
  for (const auto& [step, row] : rows) {
    EXPECT_EQ(row.value("kl/rollout_train", 1.0), 0.0) << step;
    moved += row.value("policy/grad_norm", 0.0);
  }
  EXPECT_GT(moved, 0);
  expect_loads_again(files, files / "grpo" / "ckpt" / "step_000003" / "model");
}

INSTANTIATE_TEST_SUITE_P(Runs, DenseFamilies, testing::ValuesIn(kRuns), [](const auto& tested) {
  return std::string(tested.param.name);
});

}  // namespace
}  // namespace troupe::test
