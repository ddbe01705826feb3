#include "runtime/dialects/logprob_json.hpp"

#include "apps/cli/byte_tokenizer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::dialects {
namespace {

// Logits 2, 1, 0 at temperature 2: probabilities e^1, e^0.5, e^0 over their sum. Behind top-k 2 the
// third cannot be drawn.
TEST(ProcessedLogprobs, AreThoseOfTheDrawWorkedOutByHand) {
  const auto log_of = [](double of, double all) { return static_cast<float>(std::log(of / all)); };
  const double raw = std::exp(2) + std::exp(1) + 1, warm = std::exp(1) + std::exp(0.5) + 1;
  const double kept = std::exp(1) + std::exp(0.5);
  engine::Sample sample;
  sample.tokens = {1};
  sample.logprobs = {log_of(std::exp(0.5), warm)};
  sample.raw_logprobs = {log_of(std::exp(1), raw)};
  sample.top_logprobs = {{0, log_of(std::exp(2), raw)}, {1, log_of(std::exp(1), raw)}};
  sample.facts.log_kept_mass = {log_of(kept, warm)};
  engine::SamplingParams sampling;
  sampling.temperature = 2;
  sampling.top_logprobs = 2;
  process_logprobs(sample, sampling);
  EXPECT_NEAR(sample.raw_logprobs[0], log_of(std::exp(0.5), kept), 1e-6);
  EXPECT_NEAR(sample.top_logprobs[0].logprob, log_of(std::exp(1), kept), 1e-6);
  EXPECT_NEAR(sample.top_logprobs[1].logprob, log_of(std::exp(0.5), kept), 1e-6);
}

TEST(ProcessedLogprobs, AtTemperatureOneOfAllTokensAreTheRawOnes) {
  engine::Sample sample;
  sample.tokens = {4, 5};
  sample.logprobs = sample.raw_logprobs = {-1.5f, -0.25f};
  for (const float temperature : {1.0f, 0.0f}) {
    engine::SamplingParams sampling;
    sampling.temperature = temperature;
    process_logprobs(sample, sampling);
    EXPECT_EQ(sample.raw_logprobs, (std::vector<float>{-1.5f, -0.25f}));
  }
}

// A tokenizer of bytes, so that each token of a smile is a part of it.
std::optional<text::Tokenizer> of_bytes() {
  auto tokenizer = text::Tokenizer::parse(cli::byte_tokenizer().dump(), {}, "bytes");
  EXPECT_TRUE(tokenizer);
  return tokenizer ? std::optional(*tokenizer) : std::nullopt;
}

TEST(LogprobJson, TheBytesOfAPartAreItsOwnAndJoinToTheText) {
  const auto tokenizer = of_bytes();
  const LogprobJson writer(tokenizer, false);
  const std::string text = "a\xF0\x9F\x98\x8A\xC3\xA9";
  std::vector<ScoredToken> tokens;
  for (const char c : text)
    tokens.push_back({static_cast<unsigned char>(c), -1.0f});
  std::string joined;
  const auto chat = writer.chat(tokens);
  for (const auto& one : chat["content"])
    for (const auto& byte : one["bytes"])
      joined += static_cast<char>(byte.get<int>());
  EXPECT_EQ(joined, text);
  EXPECT_EQ(chat["content"][0]["token"], "a");
  EXPECT_EQ(chat["content"][1]["token"], "bytes:\\xf0");
  EXPECT_EQ(chat["content"][6]["token"], "bytes:\\xa9");
  std::size_t offset = 0;
  const auto completion = writer.completion(tokens, offset);
  EXPECT_EQ(offset, 3u) << "characters";
  EXPECT_EQ(completion["text_offset"], nlohmann::ordered_json({0, 1, 2, 2, 2, 2, 3}));
}

TEST(LogprobJson, NoAlternativeTakesTheNameOfAnother) {
  const auto tokenizer = of_bytes();
  const std::vector<engine::TokenLogprob> top = {
      {0x9F, -0.5f}, {0x98, -0.75f}, {'a', -1.0f}, {300, -2.0f}, {301, -3.0f}};
  const std::vector<ScoredToken> tokens = {{0xF0, -1.5f, top}};
  for (const bool ids : {false, true}) {
    std::size_t offset = 0;
    const auto alternatives =
        LogprobJson(tokenizer, ids).completion(tokens, offset)["top_logprobs"][0];
    EXPECT_EQ(alternatives.size(), 6u) << alternatives.dump();
    EXPECT_EQ(alternatives[ids ? "token_id:159" : "bytes:\\x9f"], -0.5);
    EXPECT_EQ(alternatives[ids ? "token_id:240" : "bytes:\\xf0"], -1.5);
    EXPECT_EQ(alternatives["token_id:301"], -3.0) << "no token of the vocabulary";
  }
}

TEST(LogprobJson, WithoutATokenizerBytesAreNotKnown) {
  const std::optional<text::Tokenizer> none;
  const std::vector<ScoredToken> tokens = {{104, -0.5f}};
  const auto chat = LogprobJson(none, false).chat(tokens);
  EXPECT_EQ(chat["content"][0]["token"], "token_id:104");
  EXPECT_TRUE(chat["content"][0]["bytes"].is_null());
}

}  // namespace
}  // namespace troupe::dialects
