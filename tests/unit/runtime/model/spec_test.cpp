// config.json of Llama and Qwen2, and what is refused.
#include "runtime/model/spec.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;

// A good Llama config with `extra` lines put in front (the first of two equal keys loses in JSON).
std::string llama(const std::string& extra = "", const std::string& without = "") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"architectures", R"(["LlamaForCausalLM"])"},
      {"hidden_size", "64"},
      {"intermediate_size", "128"},
      {"num_hidden_layers", "2"},
      {"num_attention_heads", "4"},
      {"num_key_value_heads", "2"},
      {"max_position_embeddings", "512"},
      {"rms_norm_eps", "1e-05"},
      {"vocab_size", "300"}};
  std::string text = "{";
  for (const auto& [key, value] : rows) {
    if (key != without) text += "\"" + key + "\": " + value + ",\n";
  }
  text += extra.empty() ? "\"hidden_act\": \"silu\"" : extra;
  return text + "}";
}

core::Error error_of(const std::string& text) {
  const auto spec = parse_spec(text, "config.json");
  EXPECT_FALSE(spec) << text;
  return spec ? core::Error{} : spec.error();
}

void expect_error(const std::string& text, core::ErrorCode code, const std::string& part) {
  const core::Error error = error_of(text);
  EXPECT_EQ(error.code, code) << error.message;
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
  EXPECT_EQ(error.message.rfind("config.json", 0), 0u) << error.message;
}

TEST(ModelSpec, TwoPlacesForRopeMustSayTheSame) {
  const std::string newer = R"("rope_parameters": {"rope_type": "default", "rope_theta": 1000000})";
  expect_error(
      llama(R"("rope_theta": 10000, "rope_scaling": {"rope_type": "linear", "factor": 2.0}, )" +
            newer),
      core::ErrorCode::kData, "say different things");
  expect_error(llama(R"("rope_theta": 10000, "rope_scaling": {"rope_type": "default"}, )" + newer),
               core::ErrorCode::kData, "say different things");
  const std::string linear = R"({"TYPE": "linear", "factor": 2.0, "rope_theta": 1000000})";
  const auto as = [&](const char* type) {
    std::string out = linear;
    return out.replace(out.find("TYPE"), 4, type);
  };
  const auto same = parse_spec(
      llama(R"("rope_scaling": )" + as("type") + R"(, "rope_parameters": )" + as("rope_type")),
      "c");
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->rope.factor, 2.0);
  const auto stale =
      parse_spec(llama(R"("rope_theta": 10000, "rope_scaling": null, )" + newer), "c");
  ASSERT_TRUE(stale) << stale.error().message;
  EXPECT_EQ(stale->rope.theta, 1000000.0);
}

TEST(ModelSpec, ReadsLlama) {
  const auto spec =
      parse_spec(llama(R"("eos_token_id": [2, 5], "tie_word_embeddings": true)"), "c");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->layers, 2);
  EXPECT_EQ(spec->head_dim, 16);
  EXPECT_EQ(spec->kv_heads, 2);
  EXPECT_EQ(spec->rms_eps, 1e-5f);
  EXPECT_TRUE(spec->tied);
  EXPECT_FALSE(spec->qkv_bias);
  EXPECT_EQ(spec->eos, (std::vector<std::int32_t>{2, 5}));
  EXPECT_EQ(spec->rope.theta, 10000.0);
  EXPECT_EQ(spec->rope.kind, RopeSpec::Kind::kDefault);
}

TEST(ModelSpec, HeadDimOfItsOwn) {
  const auto spec = parse_spec(llama(R"("head_dim": 20)"), "c");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->head_dim, 20);
  EXPECT_EQ(spec->qkv_width(), 160);
}

TEST(ModelSpec, KvHeadsDefaultToHeads) {
  const auto spec = parse_spec(llama("\"x\": 1", "num_key_value_heads"), "c");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->kv_heads, 4);
}

TEST(ModelSpec, BothSpellingsOfRope) {
  const std::string kind = R"("factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192)";
  const auto old_style = parse_spec(
      llama(R"("rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", )" + kind + "}"),
      "c");
  const auto new_style = parse_spec(
      llama(R"("rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", )" + kind + "}"),
      "c");
  for (const auto* spec : {&old_style, &new_style}) {
    ASSERT_TRUE(*spec) << spec->error().message;
    EXPECT_EQ((*spec)->rope.kind, RopeSpec::Kind::kLlama3);
    EXPECT_EQ((*spec)->rope.theta, 500000.0);
    EXPECT_EQ((*spec)->rope.factor, 32.0);
    EXPECT_EQ((*spec)->rope.original_context, 8192);
  }
  const auto linear =
      parse_spec(llama(R"("rope_scaling": {"type": "linear", "factor": 2.0})"), "c");
  ASSERT_TRUE(linear);
  EXPECT_EQ(linear->rope.kind, RopeSpec::Kind::kLinear);
  const auto none = parse_spec(llama(R"("rope_scaling": null)"), "c");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->rope.kind, RopeSpec::Kind::kDefault);
}

TEST(ModelSpec, RefusesWhatItDoesNotOffer) {
  using enum core::ErrorCode;
  expect_error(llama(R"("architectures": ["MambaForCausalLM"])", "architectures"), kUnsupported,
               "MambaForCausalLM is not offered; offered are LlamaForCausalLM, "
               "LlamaForSequenceClassification, "
               "MistralForCausalLM");
  expect_error(llama(R"("hidden_act": "gelu")"), kUnsupported, "gelu");
  expect_error(llama(R"("use_sliding_window": true)"), kUnsupported, "use_sliding_window");
  expect_error(llama(R"("layer_types": ["full_attention", "sliding_attention"])"), kUnsupported,
               "sliding_attention");
  expect_error(llama(R"("quantization_config": {"bits": 4})"), kUnsupported, "quantis");
  expect_error(llama(R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0})"), kUnsupported,
               "`yarn`; offered are default, linear, llama3");
  expect_error(llama(R"("partial_rotary_factor": 0.5)"), kUnsupported, "partial_rotary_factor");
}

TEST(ModelSpec, RefusesMalformedValues) {
  using enum core::ErrorCode;
  expect_error("", kData, "JSON");
  expect_error("[1]", kData, "JSON");
  expect_error("{\"a\": " + std::string(5000, '[') + "}", kData, "nested deeper");
  expect_error(llama("\"x\": 1", "architectures"), kData, "architectures");
  expect_error(llama("\"x\": 1", "hidden_size"), kData, "hidden_size");
  expect_error(llama(R"("hidden_size": -3)", "hidden_size"), kData, "hidden_size");
  expect_error(llama(R"("hidden_size": 1e9)", "hidden_size"), kData, "hidden_size");
  expect_error(llama(R"("vocab_size": 18446744073709551615)", "vocab_size"), kData, "vocab_size");
  expect_error(llama(R"("num_key_value_heads": 3)", "num_key_value_heads"), kData,
               "not a multiple of num_key_value_heads 3");
  expect_error(llama(R"("head_dim": 15)"), kData, "even and above 0");
  expect_error(llama(R"("num_attention_heads": 6)", "num_attention_heads"), kData, "hidden_size");
  expect_error(llama(R"("rms_norm_eps": 0)", "rms_norm_eps"), kData, "rms_norm_eps");
  expect_error(llama(R"("eos_token_id": 300)"), kData, "eos_token_id");
  expect_error(llama(R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0})"), kData,
               "low_freq_factor");
  expect_error(llama(R"("rope_scaling": {"rope_type": "linear"})"), kData, "factor");
}

// One label makes a score model; transformers counts two where nothing is said.
TEST(ModelSpec, ReadsAScoreHead) {
  const std::string llama_score =
      llama(R"("architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "LABEL_0"},
               "tie_word_embeddings": true, "mean": -0.5, "std": 2.25)",
            "architectures");
  const auto spec = parse_spec(llama_score, "c");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->head, HeadKind::kScore);
  EXPECT_EQ(spec->head_rows(), 1);
  EXPECT_FALSE(spec->tied);
  EXPECT_EQ(spec->score_mean, -0.5);
  EXPECT_EQ(spec->score_std, 2.25);
  const auto qwen =
      parse_spec(llama(R"("architectures": ["Qwen2ForSequenceClassification"], "num_labels": 1)",
                       "architectures"),
                 "c");
  ASSERT_TRUE(qwen) << qwen.error().message;
  EXPECT_TRUE(qwen->qkv_bias);
  EXPECT_EQ(qwen->score_std, 1.0);
  const std::string head = R"("architectures": ["LlamaForSequenceClassification"], )";
  using enum core::ErrorCode;
  expect_error(llama(head + R"("hidden_act": "silu")", "architectures"), kUnsupported, "2 labels");
  expect_error(llama(head + R"("num_labels": 3)", "architectures"), kUnsupported, "3 labels");
  expect_error(llama(head + R"("num_labels": 1, "std": 0)", "architectures"), kData, "`std`");
}

TEST(ModelSpec, ReadsTheRewardModelsOfOpenRlhf) {
  const std::string head = R"("architectures": ["RewardModel"], "model_type": "llama", )";
  const auto spec = parse_spec(
      llama(head + R"("value_head_prefix": "score", "mean": 1.5, "std": 2)", "architectures"), "c");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->architecture, "LlamaForSequenceClassification");
  EXPECT_EQ(spec->score_mean, 1.5);
  EXPECT_NE(current_config(*spec).find("LlamaForSequenceClassification"), std::string::npos);
  using enum core::ErrorCode;
  expect_error(llama(head + R"("value_head_prefix": "value_head")", "architectures"), kUnsupported,
               "value_head_prefix `value_head`");
  expect_error(
      llama(R"("architectures": ["CriticModel"], "value_head_prefix": "score")", "architectures"),
      kUnsupported, "a CriticModel of model_type ``");
}

TEST(ModelSpec, AScoreHeadChangesTheConfigAsTransformersReadsIt) {
  const auto language = parse_spec(llama(R"("eos_token_id": 2, "pad_token_id": 0)"), "c");
  ASSERT_TRUE(language);
  EXPECT_EQ(current_config(*language), language->config_json);
  ModelSpec score = with_score_head(*language);
  score.score_mean = 3;
  score.score_std = 0.5;
  const auto again = parse_spec(current_config(score), "c");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->architecture, "LlamaForSequenceClassification");
  EXPECT_EQ(again->head, HeadKind::kScore);
  EXPECT_EQ(again->score_mean, 3);
  EXPECT_EQ(again->score_std, 0.5);
  EXPECT_NE(again->config_json.find("\"pad_token_id\": 0"), std::string::npos);
  EXPECT_EQ(score.parameter_count(),
            language->parameter_count() - language->vocab * language->hidden + language->hidden);
}

TEST(ModelSpec, FormatReadsBack) {
  ModelSpec spec = *parse_spec(llama(R"("head_dim": 20, "eos_token_id": 7,
      "rope_scaling": {"rope_type": "linear", "factor": 2.5})"),
                               "c");
  const auto again = parse_spec(format_spec(spec), "c");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->head_dim, 20);
  EXPECT_EQ(again->rms_eps, spec.rms_eps);
  EXPECT_EQ(again->rope.factor, 2.5);
  EXPECT_EQ(again->eos, spec.eos);
}

TEST(RopeTables, AgreeWithTheCLibrary) {
  ModelSpec spec = *parse_spec(llama(R"("head_dim": 64)"), "c");
  const std::int64_t positions = 5000;
  const auto frequencies = rope_frequencies(spec.rope, spec.rotary());
  std::vector<float> cos(positions * 32), sin(positions * 32);
  rope_tables(spec.rope, spec.rotary(), positions, cos.data(), sin.data());
  for (std::size_t p = 0; p < positions; ++p) {
    for (std::size_t i = 0; i < 32; ++i) {
      const auto angle = static_cast<double>(static_cast<float>(p) * frequencies[i]);
      ASSERT_NEAR(static_cast<double>(cos[p * 32 + i]), std::cos(angle), 6.1e-8) << p << " " << i;
      ASSERT_NEAR(static_cast<double>(sin[p * 32 + i]), std::sin(angle), 6.1e-8) << p << " " << i;
    }
  }
}

class ResolveModel : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    home_ = fs::path(testing::TempDir()) / (std::string("resolve_") + info->name());
    fs::remove_all(home_);
    ::unsetenv("HF_HUB_CACHE");
    ::setenv("HF_HOME", home_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("HF_HOME");
    fs::remove_all(home_);
  }
  fs::path snapshot(const std::string& commit) {
    const fs::path folder = home_ / "hub" / "models--some--model" / "snapshots" / commit;
    fs::create_directories(folder);
    std::ofstream(folder / "config.json") << "{}";
    return folder;
  }
  fs::path home_;
};

TEST_F(ResolveModel, AFolderIsItself) {
  fs::create_directories(home_ / "m");
  EXPECT_EQ(*resolve_model((home_ / "m").string()), home_ / "m");
}

TEST_F(ResolveModel, ARunIsItsNewestModelAndACheckpointItsOwn) {
  const fs::path run = home_ / "run";
  const auto model = [&](const std::string& step) {
    const fs::path folder = run / "ckpt" / step / "model";
    fs::create_directories(folder);
    std::ofstream(folder / "config.json") << "{}";
    return folder;
  };
  fs::create_directories(run / "ckpt" / "step_000012");  // a checkpoint without a model
  const auto none = resolve_model(run.string());
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("has no model in ckpt/ yet"), std::string::npos);
  const fs::path two = model("step_000002"), ten = model("step_000010"), best = model("best");
  EXPECT_EQ(*resolve_model(run.string()), ten);
  EXPECT_EQ(*resolve_model((run / "ckpt" / "step_000002").string()), two);
  EXPECT_EQ(*resolve_model((run / "ckpt" / "best").string()), best);
  EXPECT_EQ(*resolve_model(model("step_1000000").string()),
            run / "ckpt" / "step_1000000" / "model");
  EXPECT_EQ(*resolve_model(run.string()), run / "ckpt" / "step_1000000" / "model");
}

TEST_F(ResolveModel, FollowsRefsMain) {
  snapshot("bbb");
  const fs::path main = snapshot("aaa");
  fs::create_directories(home_ / "hub" / "models--some--model" / "refs");
  std::ofstream(home_ / "hub" / "models--some--model" / "refs" / "main") << "aaa";
  EXPECT_EQ(*resolve_model("some/model"), main);
}

TEST_F(ResolveModel, TakesTheNewestSnapshotWithoutRefs) {
  const fs::path old_one = snapshot("aaa"), new_one = snapshot("bbb");
  fs::last_write_time(old_one, fs::last_write_time(new_one) - std::chrono::hours(1));
  EXPECT_EQ(*resolve_model("some/model"), new_one);
}

TEST_F(ResolveModel, MissingNamesSayWhereItLooked) {
  for (const std::string name :
       {"some/model", "no/such/folder", "nothing", "../x", "a/..", "~/none"}) {
    const auto folder = resolve_model(name);
    ASSERT_FALSE(folder) << name;
    EXPECT_EQ(folder.error().code, core::ErrorCode::kNotFound);
    EXPECT_NE(folder.error().message.find(name), std::string::npos);
  }
  EXPECT_NE(resolve_model("some/model").error().message.find("models--some--model"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe::model
