// `troupe plan` on four known machines, with verdicts that were worked out by hand (in the
// comments; GB are 1e9 bytes, P is the number of weights, E of the embedding), and its bad inputs.
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/plan/plan_flags.hpp"
#include "apps/troupe/plan/plan_words.hpp"
#include "runtime/config/read.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using plan::Kind;

class PlanOf : public testing::Test {
 protected:
  PlanOf() : folder_(fs::temp_directory_path() / ("troupe_plan_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~PlanOf() override { fs::remove_all(folder_); }

  // A folder with a config.json and no weights.
  std::string model(const std::string& name, nlohmann::json config) {
    fs::create_directories(folder_ / name);
    config["hidden_act"] = "silu";
    config["rms_norm_eps"] = 1e-5;
    config["tie_word_embeddings"] = false;
    std::ofstream(folder_ / name / "config.json") << config;
    return (folder_ / name).string();
  }
  std::string llama3_70b() {
    return model("llama-3-70b", {{"architectures", {"LlamaForCausalLM"}},
                                 {"model_type", "llama"},
                                 {"hidden_size", 8192},
                                 {"num_hidden_layers", 80},
                                 {"num_attention_heads", 64},
                                 {"num_key_value_heads", 8},
                                 {"intermediate_size", 28672},
                                 {"vocab_size", 128256},
                                 {"max_position_embeddings", 8192},
                                 {"rope_theta", 500000.0}});
  }
  std::string llama3_8b() {
    return model("llama-3-8b", {{"architectures", {"LlamaForCausalLM"}},
                                {"model_type", "llama"},
                                {"hidden_size", 4096},
                                {"num_hidden_layers", 32},
                                {"num_attention_heads", 32},
                                {"num_key_value_heads", 8},
                                {"intermediate_size", 14336},
                                {"vocab_size", 128256},
                                {"max_position_embeddings", 8192},
                                {"rope_theta", 500000.0}});
  }
  std::string codellama_34b() {
    return model("codellama-34b", {{"architectures", {"LlamaForCausalLM"}},
                                   {"model_type", "llama"},
                                   {"hidden_size", 8192},
                                   {"num_hidden_layers", 48},
                                   {"num_attention_heads", 64},
                                   {"num_key_value_heads", 8},
                                   {"intermediate_size", 22016},
                                   {"vocab_size", 32000},
                                   {"max_position_embeddings", 16384},
                                   {"rope_theta", 1000000.0}});
  }
  std::string qwen25_7b() {
    return model("qwen-2.5-7b", {{"architectures", {"Qwen2ForCausalLM"}},
                                 {"model_type", "qwen2"},
                                 {"hidden_size", 3584},
                                 {"num_hidden_layers", 28},
                                 {"num_attention_heads", 28},
                                 {"num_key_value_heads", 4},
                                 {"intermediate_size", 18944},
                                 {"vocab_size", 152064},
                                 {"max_position_embeddings", 32768},
                                 {"rope_theta", 1000000.0}});
  }

  std::vector<std::string> ppo(const std::string& model, std::vector<std::string> more) {
    std::vector<std::string> words = {"--actor.model_name_or_path",
                                      model,
                                      "--data.prompt_dataset",
                                      "prompts.jsonl",
                                      "--data.prompt_max_len",
                                      "1024",
                                      "--rollout.max_new_tokens",
                                      "1024",
                                      "--rollout.batch_size",
                                      "128",
                                      "--rollout.n_samples_per_prompt",
                                      "8",
                                      "--algo.kl.init_coef",
                                      "0.01",
                                      "--reward.python",
                                      "reward.py",
                                      "--actor.gradient_checkpointing_enable",
                                      "true",
                                      "--actor.device",
                                      "cuda",
                                      "--ref.device",
                                      "cuda",
                                      "--rollout.device",
                                      "cuda",
                                      "--actor.param_dtype",
                                      "bf16-compute"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  core::Result<void> make(const std::vector<std::string>& words) {
    bool help = false;
    TROUPE_TRY_ASSIGN(flags, read_plan_flags(words, help));
    TROUPE_TRY_ASSIGN(builder, config::read(session::run_table(), flags.config));
    TROUPE_TRY_ASSIGN(config, builder.finish());
    TROUPE_TRY_SET(facts_, plan_facts(config, builder.origins(), flags));
    TROUPE_TRY_SET(plan_, plan::plan_of(facts_));
    return {};
  }
  void must(const std::vector<std::string>& words) {
    const auto made = make(words);
    ASSERT_TRUE(made) << made.error().message;
  }
  std::string refusal(const std::vector<std::string>& words) {
    const auto made = make(words);
    return made ? "accepted" : made.error().message;
  }

  std::size_t role(const std::string& name) const {
    for (std::size_t i = 0; i < facts_.roles.size(); ++i) {
      if (facts_.roles[i].name == name) return i;
    }
    ADD_FAILURE() << "no role " << name;
    return 0;
  }
  double gb(const std::string& name, Kind kind) const {
    return static_cast<double>(plan_.memory[role(name)].device(kind)) / 1e9;
  }
  double sum_gb(const std::string& name) const {
    return static_cast<double>(plan_.memory[role(name)].device_total()) / 1e9;
  }
  // The verdict on a role; empty: it fits.
  std::string verdict(const std::string& name) const {
    for (const std::string& line : verdict_words(facts_, plan_)) {
      if (line.find("does not fit: " + name + " on") == 0) return line;
    }
    return "";
  }
  static bool says(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
  }

  const fs::path folder_;
  plan::RunFacts facts_;
  plan::Plan plan_;
};

// P = 70.554e9, E = 1.0507e9. Policy, 32 ranks, stage 3, 4,096 rows: master 4 P / 32 = 8.82,
// moments 17.64, gradients 8.82, partial sums 4 E = 4.20, gathered (4 + 2) E = 6.30, context 1.5:
// 47.3. A row keeps 81 x 8192 + 84,034 = 747,586 floats, computes with 9 x 8192 + 10,240 +
// 8192
// + 4 x 28,672 + 6 x 1024 = 212,992: in all 0.9606e6 x 4,096 x 4 x 1.25 = 19.67; pieces of sums
// 672 x 28,672 and 2 x 256 x 8192 floats: 0.12. Logits: 4,096 rows x 128,256 x 4 x 1.25 = 2.63.
// Staging 34 MB x 1.25 = 0.04. The run is synchronous, so no update scores. Sum 69.8: it fits.
// Critic: panels of f32, so gathered 8 E = 8.41; it checkpoints as the policy does, and values take
// 4 x 8192 + 10,240 + 8192 + 3 x 28,672 + 2048 = 139,264 floats a row more: 22.52 + 0.12. Sum, of P
// - E: 71.5. Engines: two versions of 2 (P + E) = 143.2. Reference: 143.2. Nothing splits these.
TEST_F(PlanOf, PpoOf70BOn128A100s) {
  must(
      ppo(llama3_70b(), {"--cluster", "16x8xA100-80", "--actor-ranks", "32", "--critic-ranks", "32",
                         "--zero-stage", "3", "--engines", "48", "--algo.advantage.estimator",
                         "gae", "--train.micro_tokens_max", "4096", "--critic.device", "cuda"}));
  EXPECT_EQ(plan_.placement.idle, 128 - 32 - 32 - 48 - 1);
  EXPECT_NEAR(gb("policy", Kind::kMaster), 8.82, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kMoments), 17.64, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kGradients), 8.82, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kPartials), 4.20, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kGathered), 6.30, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kStaging), 0.0426, 0.001);
  EXPECT_NEAR(gb("policy", Kind::kActivations), 19.79, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kLogits), 2.63, 0.01);
  EXPECT_NEAR(sum_gb("policy"), 69.8, 0.1);
  EXPECT_EQ(verdict("policy"), "");
  EXPECT_NEAR(gb("critic", Kind::kGathered), 8.41, 0.01);
  EXPECT_NEAR(gb("critic", Kind::kActivations), 22.6, 0.1);
  EXPECT_NEAR(sum_gb("critic"), 71.5, 0.1);
  EXPECT_EQ(verdict("critic"), "");
  EXPECT_NEAR(gb("generator", Kind::kPanels), 143.2, 0.1);
  EXPECT_NEAR(gb("generator", Kind::kSparePanels), 143.2, 0.1);
  EXPECT_TRUE(says(verdict("generator"), "no setting mends it")) << verdict("generator");
  EXPECT_TRUE(says(verdict("generator"), "143 of it panels")) << verdict("generator");
  EXPECT_TRUE(says(verdict("reference"), "no setting mends it")) << verdict("reference");
  EXPECT_FALSE(plan_.fits());
  // An image of the weights in the panels' type, 8 engines on the policy's four nodes: none, since
  // its ranks fill them.
  EXPECT_EQ(plan_.push.remote, 48);
}

// P = 33.744e9, E = 0.262e9, a layer 0.6921e9. Alone a rank has 16 P / 8 = 67.5, and 10 bytes of a
// layer's weights in partial sums and gathered = 6.9; the reference's panels 2 (P + E) = 68.0 lie
// beside it whole. With offload 4 P / 8 = 16.9 + 6.9 + 68.0 are more than 80, whatever the rows.
TEST_F(PlanOf, DpoOf34BOn8A100s) {
  must({"--method",
        "dpo",
        "--actor.model_name_or_path",
        codellama_34b(),
        "--data.dataset",
        "pairs.jsonl",
        "--actor.device",
        "cuda",
        "--actor.param_dtype",
        "bf16-compute",
        "--actor.gradient_checkpointing_enable",
        "true",
        "--train.micro_tokens_max",
        "4096",
        "--cluster",
        "8xA100-80",
        "--actor-ranks",
        "8",
        "--zero-stage",
        "3"});
  EXPECT_NEAR(
      gb("policy", Kind::kMaster) + gb("policy", Kind::kMoments) + gb("policy", Kind::kGradients),
      67.49, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kPartials), 2.77, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kGathered), 4.15, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kReference), 68.0, 0.1);
  EXPECT_TRUE(says(verdict("policy"), "68.0 of it reference panels; no setting mends it"))
      << verdict("policy");
  // A cluster of 32: 16 P / 32 = 16.9, and the reference with the rest is still too much.
  must({"--method",
        "dpo",
        "--actor.model_name_or_path",
        codellama_34b(),
        "--data.dataset",
        "pairs.jsonl",
        "--actor.device",
        "cuda",
        "--actor.param_dtype",
        "bf16-compute",
        "--actor.gradient_checkpointing_enable",
        "true",
        "--train.micro_tokens_max",
        "4096",
        "--cluster",
        "4x8xA100-80",
        "--actor-ranks",
        "32",
        "--zero-stage",
        "3"});
  EXPECT_FALSE(plan_.fits());
}

// P = 7.616e9, E = 0.545e9: one device for each of policy, critic, engine and reference. Master
// alone is 30.5, the engine's two versions 2 x 16.3; the reference's 16.3 with 2,048 rows fit.
TEST_F(PlanOf, PpoOf7BOnFour24GbCards) {
  must(ppo(qwen25_7b(), {"--cluster", "4xRTX4090-24", "--algo.advantage.estimator", "gae",
                         "--actor.device", "cuda:0", "--critic.device", "cuda:1",
                         "--rollout.device", "cuda:2", "--ref.device", "cuda:3"}));
  const std::vector<std::vector<std::int64_t>> devices = {{0}, {1}, {2}, {3}};
  EXPECT_EQ(plan_.placement.devices, devices);
  EXPECT_NEAR(gb("policy", Kind::kMaster), 30.46, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kMoments), 60.93, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kPanels), 16.35, 0.05);
  EXPECT_NEAR(gb("generator", Kind::kPanels), 16.35, 0.05);
  // A quarter of 4 P of gradients, 4 E of partial sums and 6 E gathered: 13.1, and its rows.
  EXPECT_TRUE(says(verdict("policy"), "it fits with --zero-stage 3, --actor-ranks 4 and --offload"))
      << verdict("policy");
  EXPECT_TRUE(says(verdict("critic"), "no setting mends it")) << verdict("critic");
  EXPECT_TRUE(says(verdict("generator"), "no setting mends it")) << verdict("generator");
  EXPECT_EQ(verdict("reference"), "");
  EXPECT_EQ(plan_.shortfalls.size(), 3u);
}

// P = 8.030e9, E = 0.5253e9. Policy, 4 ranks, stage 3: 16 P / 4 = 32.1, 10 E = 5.3, context 1.5. A
// row keeps 43,042 + 33 x 4096 = 178,210 floats and computes with 110,592: 288,802 x 4,096 x 4 x
// 1.25 = 5.91; pieces of sums 0.06. Logits: kept / 3 hold 1,897 rows = 1,792 of a chunk and one
// place: 1,792 rows x 128,256 x 4 x 1.25 = 1.15. Staging 0.04. In all 46.1.
// Engines: 2 x 17.1 + 32.2 of keys + 2.0
// + 0.2 of logits + rows: 69.5. Reference: 17.1 + ... It fits. At stage 0 a rank has 16 P + 4 P of
// partial sums = 160.6, and stage 3 mends it.
TEST_F(PlanOf, GrpoOf8BOn8H100s) {
  const std::vector<std::string> words = {"--cluster",
                                          "1x8xH100-80",
                                          "--actor-ranks",
                                          "4",
                                          "--engines",
                                          "3",
                                          "--train.micro_tokens_max",
                                          "4096",
                                          "--rollout.kv_cache_gb",
                                          "30",
                                          "--rollout.device",
                                          "cuda:4,cuda:5,cuda:6",
                                          "--rollout.generators",
                                          "3",
                                          "--ref.device",
                                          "cuda:7"};
  auto sharded = words;
  sharded.insert(sharded.end(), {"--zero-stage", "3"});
  must(ppo(llama3_8b(), sharded));
  EXPECT_NEAR(
      gb("policy", Kind::kMaster) + gb("policy", Kind::kMoments) + gb("policy", Kind::kGradients),
      32.12, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kActivations), 5.97, 0.01);
  EXPECT_NEAR(gb("policy", Kind::kLogits), 1.15, 0.01);
  EXPECT_NEAR(sum_gb("policy"), 46.1, 0.1);
  EXPECT_NEAR(gb("generator", Kind::kKeys), 32.2, 0.1);
  EXPECT_TRUE(plan_.fits()) << plan_text(facts_, plan_);
  EXPECT_EQ(plan_.placement.idle, 0);
  must(ppo(llama3_8b(), words));
  EXPECT_NEAR(gb("policy", Kind::kPartials), 32.12, 0.01);
  EXPECT_TRUE(says(verdict("policy"), "it fits with --zero-stage 3")) << verdict("policy");
  EXPECT_EQ(verdict("generator"), "");
}

TEST_F(PlanOf, BadInputsAreRefusedWithTheFlagToChange) {
  const std::string small = llama3_8b();
  EXPECT_TRUE(
      says(refusal(ppo(small, {})),
           "actor.device cuda:0: how much memory the GPUs have is not known; give --cluster"))
      << refusal(ppo(small, {}));
  EXPECT_TRUE(says(refusal(ppo(small, {"--cluster", "8x8"})), "--cluster 8x8; expected"));
  EXPECT_TRUE(says(
      refusal(ppo(small, {"--cluster", "8xH100-80", "--train.lanes", "2", "--actor-ranks", "4"})),
      "more ranks than lanes (2)"));
  EXPECT_TRUE(says(refusal(ppo(small, {"--cluster", "8xH100-80", "--rollout.generators", "2",
                                       "--rollout.device", "cuda:1,cuda:1"})),
                   "rollout.device names cuda:1 twice"));
  EXPECT_TRUE(says(refusal(ppo(small, {"--cluster", "2x4xH100-80", "--engines", "9"})),
                   "the roles want 11 devices"));
  EXPECT_TRUE(
      says(refusal(ppo(small, {"--cluster", "8xH100-80", "--zero-stage", "4"})), "--zero-stage"));
  EXPECT_TRUE(says(refusal(ppo(small, {"--cluster", "8xH100-80", "--actor-ranks", "-1"})),
                   "--actor-ranks"));
  EXPECT_TRUE(says(refusal(ppo(small, {"--cluster", "8xH100-80", "--zero-stage", "2"})),
                   "one rank shares nothing"));
  EXPECT_TRUE(says(refusal(ppo(small, {"--clutser", "8xH100-80"})), "clutser"));
  EXPECT_TRUE(
      says(refusal(ppo(small, {"--cluster", "8xH100-80", "--train.micro_tokens_max", "512"})),
           "--train.micro_tokens_max 2047"));
  EXPECT_TRUE(
      says(refusal(ppo((folder_ / "nowhere").string(), {"--cluster", "8xH100-80"})), "nowhere"));
}

TEST_F(PlanOf, RanksAndStageAreThoseOfTheConfigurationUnlessAFlagSaysMore) {
  std::vector<std::string> words =
      ppo(llama3_8b(), {"--cluster", "8xH100-80", "--actor.ranks", "2", "--train.zero_stage", "1"});
  *(std::find(words.begin(), words.end(), "--actor.device") + 1) = "cuda:0,cuda:1";
  const auto ranks = [&] {
    return std::get<plan::TrainerFacts>(facts_.roles[role("policy")].facts).ranks;
  };
  must(words);
  EXPECT_EQ(ranks().count, 2);
  EXPECT_EQ(ranks().zero_stage, 1);
  words.insert(words.end(), {"--actor-ranks", "4", "--zero-stage", "3"});
  must(words);
  EXPECT_EQ(ranks().count, 4);
  EXPECT_EQ(ranks().zero_stage, 3);
}

TEST_F(PlanOf, JsonHasTheNumbersOfTheText) {
  must(ppo(llama3_8b(), {"--cluster", "8xH100-80", "--actor-ranks", "4", "--zero-stage", "3",
                         "--engines", "2"}));
  const auto json = nlohmann::json::parse(plan_json(facts_, plan_));
  EXPECT_EQ(json["roles"].size(), facts_.roles.size());
  for (std::size_t i = 0; i < facts_.roles.size(); ++i) {
    std::int64_t sum = 0;
    for (const auto& [kind, bytes] : json["roles"][i]["kinds"].items())
      sum += bytes.get<std::int64_t>();
    EXPECT_EQ(sum, plan_.memory[i].device_total());
    EXPECT_EQ(json["roles"][i]["bytes"], sum);
  }
  EXPECT_EQ(json["fits"], plan_.fits());
  EXPECT_EQ(json["batch"]["micro_batches_of_step"], plan_.batch.micro_batches);
  EXPECT_EQ(json["cluster"]["device_bytes"], 80'000'000'000);
  const std::string text = plan_text(facts_, plan_);
  for (const char* part :
       {"LlamaForCausalLM, 8.03 B weights", "1 node of 8 H100-80", "policy", "master", "moments",
        "spare panels", "keys and values", "an update: 128 prompts x 8 samples = 1,024",
        "lanes: ", "a version of the weights is"}) {
    EXPECT_TRUE(says(text, part)) << part << " in\n" << text;
  }
}

TEST_F(PlanOf, CommandEndsWithTheStatusOfItsVerdict) {
  const auto run = [](const std::vector<std::string>& words) {
    testing::internal::CaptureStdout();
    const auto done = run_plan(words);
    const std::string text = testing::internal::GetCapturedStdout();
    return std::pair(done ? 0 : core::exit_status(done.error().code), text);
  };
  const auto [bad, text] = run(ppo(llama3_8b(), {"--cluster", "8xH100-80"}));
  EXPECT_EQ(bad, 3);
  EXPECT_TRUE(says(text, "does not fit: policy on node 0 device 0")) << text;
  const auto [good, json] = run(ppo(llama3_8b(), {"--cluster", "2x8xH100-80", "--actor-ranks", "8",
                                                  "--zero-stage", "3", "--json"}));
  EXPECT_EQ(good, 0) << json;
  EXPECT_EQ(nlohmann::json::parse(json)["fits"], true);
  EXPECT_EQ(run({"--help"}).first, 0);
}

}  // namespace
}  // namespace troupe::app
