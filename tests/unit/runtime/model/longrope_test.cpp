// RoPE `longrope`: which set of factors counts, what cosines and sines are multiplied by, and what
// of a config.json is refused.
#include "runtime/model/spec.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::model {
namespace {

using core::ErrorCode;

constexpr const char* kFactors = R"("short_factor": [1, 2, 4, 5], "long_factor": [1, 2.5, 8, 10])";

// Phi-3 with heads of 16 of which 8 numbers turn, so four planes: theta^(i/8) = 1, 10, 100, 1000.
std::string phi3(const std::string& scaling, const std::string& beside) {
  return R"({"architectures": ["Phi3ForCausalLM"], "hidden_size": 64, "intermediate_size": 96,
             "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
             "num_hidden_layers": 2, "partial_rotary_factor": 0.5, "rope_scaling": {)" +
         scaling + "}" + (beside.empty() ? "" : ", " + beside) + "}";
}

std::string longrope(const std::string& more, const std::string& beside) {
  return phi3(R"("type": "longrope", )" + std::string(kFactors) + (more.empty() ? "" : ", " + more),
              beside);
}

ModelSpec longrope_spec(const std::string& config) {
  auto spec = parse_spec(config, "config.json");
  EXPECT_TRUE(spec) << spec.error().message;
  return spec ? *spec : ModelSpec{};
}

void expect_refused(const std::string& config, const std::string& word) {
  const auto spec = parse_spec(config, "config.json");
  ASSERT_FALSE(spec) << config;
  EXPECT_EQ(spec.error().code, ErrorCode::kData);
  EXPECT_NE(spec.error().message.find(word), std::string::npos) << spec.error().message;
}

void expect_frequencies(const ModelSpec& spec, const std::vector<double>& expected) {
  const std::vector<float> found = rope_frequencies(spec.rope, spec.rotary());
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(static_cast<double>(found[i]), expected[i], 1e-7 * expected[i]) << i;
}

TEST(LongRope, AContextAboveTheOriginalTakesTheLongFactors) {
  const ModelSpec spec = longrope_spec(
      longrope("", R"("max_position_embeddings": 64, "original_max_position_embeddings": 16)"));
  EXPECT_TRUE(spec.rope.extended);
  expect_frequencies(spec, {1.0, 1 / 25.0, 1 / 800.0, 1 / 10000.0});
  // sqrt(1 + ln 4 / ln 16)
  EXPECT_DOUBLE_EQ(spec.rope.attention_factor, std::sqrt(1.5));
  std::vector<float> cos(12), sin(12);
  rope_tables(spec.rope, spec.rotary(), 3, cos.data(), sin.data());
  const double scale = std::sqrt(1.5);
  EXPECT_FLOAT_EQ(cos[0], static_cast<float>(scale));
  EXPECT_FLOAT_EQ(sin[0], 0.0f);
  EXPECT_FLOAT_EQ(cos[8], static_cast<float>(scale * std::cos(2.0)));
  EXPECT_FLOAT_EQ(sin[9], static_cast<float>(scale * std::sin(0.08)));
}

TEST(LongRope, AContextWithinTheOriginalTakesTheShortFactors) {
  const ModelSpec spec = longrope_spec(
      longrope("", R"("max_position_embeddings": 16, "original_max_position_embeddings": 16)"));
  EXPECT_FALSE(spec.rope.extended);
  expect_frequencies(spec, {1.0, 1 / 20.0, 1 / 400.0, 1 / 5000.0});
  EXPECT_EQ(spec.rope.attention_factor, 1.0);
  // The context cut short, the models' scale kept.
  const ModelSpec cut = longrope_spec(
      longrope(R"("factor": 4.0)",
               R"("max_position_embeddings": 16, "original_max_position_embeddings": 16)"));
  EXPECT_FALSE(cut.rope.extended);
  EXPECT_DOUBLE_EQ(cut.rope.attention_factor, std::sqrt(1.5));
}

TEST(LongRope, AnAttentionFactorThatIsGivenCounts) {
  const std::string lengths =
      R"("max_position_embeddings": 64, "original_max_position_embeddings": 16)";
  EXPECT_EQ(longrope_spec(longrope(R"("attention_factor": 1.25)", lengths)).rope.attention_factor,
            1.25);
  expect_refused(longrope(R"("attention_factor": 0)", lengths), "`attention_factor`");
  expect_refused(longrope(R"("factor": 0.5)", lengths), "`factor` must be at least 1");
}

// transformers takes the length beside the object where both are there.
TEST(LongRope, TheOriginalLengthStandsBesideTheFactorsOrAmongThem) {
  const std::string inside = R"("original_max_position_embeddings": 32)";
  const std::string context = R"("max_position_embeddings": 64)";
  EXPECT_EQ(longrope_spec(longrope(inside, context)).rope.original_context, 32);
  EXPECT_EQ(longrope_spec(longrope(inside, context + R"(, "original_max_position_embeddings": 8)"))
                .rope.original_context,
            8);
  expect_refused(longrope("", context), "needs `original_max_position_embeddings`");
  expect_refused(longrope(R"("original_max_position_embeddings": 1)", context), "from 2 to");
}

TEST(LongRope, RefusesFactorsThatDoNotFit) {
  const std::string lengths =
      R"("max_position_embeddings": 64, "original_max_position_embeddings": 16)";
  const auto with = [&](const std::string& factors) {
    return phi3(R"("rope_type": "longrope", )" + factors, lengths);
  };
  expect_refused(with(R"("short_factor": [1, 1, 1, 1])"), "needs `long_factor`");
  expect_refused(with(R"("long_factor": [1, 1, 1, 1])"), "needs `short_factor`");
  expect_refused(with(R"("short_factor": [1, 1, 1], "long_factor": [1, 1, 1, 1])"),
                 "`short_factor` has 3 factors; a head has 4 pairs of numbers that rotate");
  expect_refused(with(R"("short_factor": [1, 1, 1, 1], "long_factor": [1, 1, 1, 1, 1, 1, 1, 1])"),
                 "`long_factor` has 8 factors");
  expect_refused(with(R"("short_factor": 1, "long_factor": [1, 1, 1, 1])"), "not a list");
  expect_refused(with(R"("short_factor": [1, 1, 0, 1], "long_factor": [1, 1, 1, 1])"),
                 "`short_factor` holds 0;");
  expect_refused(with(R"("short_factor": [1, 1, "x", 1], "long_factor": [1, 1, 1, 1])"), "holds");
}

TEST(LongRope, TheShortFactorsCanBeChosenAndEndTheContext) {
  const std::string lengths =
      R"("max_position_embeddings": 64, "original_max_position_embeddings": 16)";
  const ModelSpec spec = longrope_spec(longrope("", lengths + R"(, "longrope_factors": "short")"));
  EXPECT_FALSE(spec.rope.extended);
  EXPECT_EQ(spec.context, 16);
  expect_frequencies(spec, {1.0, 1 / 20.0, 1 / 400.0, 1 / 5000.0});
  // The scale is the whole model's, sqrt(1 + ln 4 / ln 16), as transformers has it at any length.
  EXPECT_DOUBLE_EQ(spec.rope.attention_factor, std::sqrt(1.5));
  const ModelSpec same = longrope_spec(longrope("", lengths + R"(, "longrope_factors": "long")"));
  EXPECT_TRUE(same.rope.extended);
  EXPECT_EQ(same.context, 64);
  // What is written for such a model reads back to it.
  const ModelSpec again = longrope_spec(format_spec(spec));
  EXPECT_EQ(again.context, 16);
  EXPECT_DOUBLE_EQ(again.rope.attention_factor, std::sqrt(1.5));
  expect_refused(longrope("", lengths + R"(, "longrope_factors": "auto")"),
                 "offered are long, short");
  expect_refused(phi3(R"("rope_type": "default")", R"("longrope_factors": "short")"),
                 "the rope type is not `longrope`");
}

TEST(LongRope, WhatTheUserIsTold) {
  const std::string lengths =
      R"("max_position_embeddings": 64, "original_max_position_embeddings": 16)";
  const auto of = [&](const std::string& more) {
    return longrope_note(longrope_spec(longrope("", lengths + more))).value_or("nothing");
  };
  EXPECT_EQ(of(""),
            "longrope: the long factors turn all positions, for the context of 64 tokens is above "
            "the original 16; transformers takes the short ones for sequences of at most 16: for "
            "these, put \"longrope_factors\": \"short\" into config.json");
  EXPECT_EQ(of(R"(, "longrope_factors": "short")")
                .find("longrope: the short factors turn all positions and the context ends at 16"),
            0u);
  // Where both agree there is nothing to say.
  EXPECT_FALSE(longrope_note(longrope_spec(
      longrope("", R"("max_position_embeddings": 16, "original_max_position_embeddings": 16)"))));
}

TEST(LongRope, FormatReadsBack) {
  const ModelSpec spec = longrope_spec(
      longrope(R"("factor": 3.0)",
               R"("max_position_embeddings": 64, "original_max_position_embeddings": 16)"));
  const ModelSpec again = longrope_spec(format_spec(spec));
  EXPECT_EQ(again.rope.short_factors, spec.rope.short_factors);
  EXPECT_EQ(again.rope.long_factors, spec.rope.long_factors);
  EXPECT_EQ(again.rope.attention_factor, spec.rope.attention_factor);
  EXPECT_EQ(again.rope.original_context, 16);
  EXPECT_TRUE(again.rope.extended);
}

}  // namespace
}  // namespace troupe::model
