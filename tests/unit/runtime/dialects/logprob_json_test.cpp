#include "runtime/dialects/logprob_json.hpp"

#include <gtest/gtest.h>

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
  sample.log_kept_mass = {log_of(kept, warm)};
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

}  // namespace
}  // namespace troupe::dialects
