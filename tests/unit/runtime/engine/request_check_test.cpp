// Each bad request is refused with its code and a message that names the group and what to change.
#include "runtime/engine/request_check.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace troupe::engine {
namespace {

using core::ErrorCode;

RequestBounds bounds() {
  RequestBounds bounds;
  bounds.vocab = 100;
  bounds.context = 64;
  bounds.sequences_max = 8;
  bounds.blocks = 10;
  bounds.end_tokens = 1;
  return bounds;
}

GroupRequest good() {
  GroupRequest request;
  request.id.value = 7;
  request.prompt = {1, 2, 3};
  return request;
}

struct BadCase {
  const char* name;
  std::function<void(GroupRequest&)> spoil;
  ErrorCode code;
  const char* says;
};

TEST(CheckRequest, TakesAGoodRequest) {
  EXPECT_TRUE(check_request(good(), bounds()));
}

TEST(CheckRequest, RefusesBadOnesAndSaysWhy) {
  using Code = ErrorCode;
  const BadCase cases[] = {
      {"empty prompt", [](GroupRequest& r) { r.prompt.clear(); }, Code::kInvalidArgument, "empty"},
      {"id too large", [](GroupRequest& r) { r.prompt[1] = 100; }, Code::kInvalidArgument,
       "token 100 at position 1"},
      {"negative id", [](GroupRequest& r) { r.prompt[2] = -1; }, Code::kInvalidArgument, "-1"},
      {"no samples", [](GroupRequest& r) { r.samples = 0; }, Code::kInvalidArgument, "samples"},
      {"negative temperature", [](GroupRequest& r) { r.sampling.temperature = -1.0f; },
       Code::kInvalidArgument, "temperature"},
      {"tiny temperature", [](GroupRequest& r) { r.sampling.temperature = 1e-9f; },
       Code::kInvalidArgument, "0 (greedy)"},
      {"nan temperature", [](GroupRequest& r) { r.sampling.temperature = std::stof("nan"); },
       Code::kInvalidArgument, "temperature"},
      {"top_k", [](GroupRequest& r) { r.sampling.top_k = -2; }, Code::kInvalidArgument, "top_k"},
      {"top_p 0", [](GroupRequest& r) { r.sampling.top_p = 0.0f; }, Code::kInvalidArgument,
       "top_p"},
      {"top_p nan", [](GroupRequest& r) { r.sampling.top_p = std::stof("nan"); },
       Code::kInvalidArgument, "top_p"},
      {"min_p", [](GroupRequest& r) { r.sampling.min_p = 1.5f; }, Code::kInvalidArgument, "min_p"},
      {"no tokens", [](GroupRequest& r) { r.sampling.max_new_tokens = 0; }, Code::kInvalidArgument,
       "max_new_tokens"},
      {"min above max", [](GroupRequest& r) { r.sampling.min_new_tokens = 17; },
       Code::kInvalidArgument, "min_new_tokens"},
      {"stop token", [](GroupRequest& r) { r.sampling.stop_tokens = {100}; },
       Code::kInvalidArgument, "stop token 100"},
      {"stop string", [](GroupRequest& r) { r.sampling.stop_strings = {"x"}; },
       Code::kInvalidArgument, "tokenizer"},
      {"empty stop string", [](GroupRequest& r) { r.sampling.stop_strings = {""}; },
       Code::kInvalidArgument, "stop string"},
      {"repetition", [](GroupRequest& r) { r.sampling.repetition_penalty = 0.0f; },
       Code::kInvalidArgument, "repetition_penalty"},
      {"repetition nan", [](GroupRequest& r) { r.sampling.repetition_penalty = std::stof("nan"); },
       Code::kInvalidArgument, "repetition_penalty"},
      {"presence", [](GroupRequest& r) { r.sampling.presence_penalty = 2.5f; },
       Code::kInvalidArgument, "presence_penalty"},
      {"frequency", [](GroupRequest& r) { r.sampling.frequency_penalty = std::stof("-inf"); },
       Code::kInvalidArgument, "frequency_penalty"},
      {"bias outside",
       [](GroupRequest& r) {
         r.sampling.logit_bias = {{100, 1.0f}};
       },
       Code::kInvalidArgument, "token 100"},
      {"bias twice",
       [](GroupRequest& r) {
         r.sampling.logit_bias = {{4, 1.0f}, {4, 1.0f}};
       },
       Code::kInvalidArgument, "ascend"},
      {"bias infinite",
       [](GroupRequest& r) {
         r.sampling.logit_bias = {{4, std::stof("inf")}};
       },
       Code::kInvalidArgument, "bias of token 4"},
      {"too many biases", [](GroupRequest& r) { r.sampling.logit_bias.resize(1025); },
       Code::kInvalidArgument, "1025 tokens"},
      {"top_logprobs", [](GroupRequest& r) { r.sampling.top_logprobs = 101; },
       Code::kInvalidArgument, "between 0 and 100"},
      {"negative top_logprobs", [](GroupRequest& r) { r.sampling.top_logprobs = -1; },
       Code::kInvalidArgument, "top_logprobs"},
      {"too long", [](GroupRequest& r) { r.sampling.max_new_tokens = 62; }, Code::kData,
       "context of 64"},
      {"prompt too long", [](GroupRequest& r) { r.prompt.assign(64, 1); }, Code::kData, "shorten"},
      {"too many samples", [](GroupRequest& r) { r.samples = 9; }, Code::kResources,
       "sequences_max"},
      {"too many blocks",
       [](GroupRequest& r) {
         r.prompt.assign(48, 1);
         r.samples = 8;
       },
       Code::kResources, "rollout.kv_cache_gb"},
  };
  for (const BadCase& bad : cases) {
    GroupRequest request = good();
    bad.spoil(request);
    const auto result = check_request(request, bounds());
    ASSERT_FALSE(result) << bad.name;
    EXPECT_EQ(result.error().code, bad.code) << bad.name;
    EXPECT_NE(result.error().message.find(bad.says), std::string::npos)
        << bad.name << ": " << result.error().message;
    EXPECT_EQ(result.error().message.rfind("group 7: ", 0), 0u) << result.error().message;
  }
}

TEST(CheckRequest, RefusesAMaskOfTheWholeVocabulary) {
  GroupRequest request = good();
  RequestBounds small = bounds();
  small.vocab = 4;
  request.sampling.stop_tokens = {0, 1, 2};
  request.sampling.min_new_tokens = 1;
  EXPECT_FALSE(check_request(request, small));
  request.sampling.min_new_tokens = 0;
  EXPECT_TRUE(check_request(request, small));
}

}  // namespace
}  // namespace troupe::engine
