// What a key may use, on a clock that stands still until it is moved.
#include "apps/serving/key_meter.hpp"

#include "apps/serving/serve_metrics.hpp"

#include <gtest/gtest.h>

namespace troupe::serving {
namespace {

using dialects::ApiError;
using std::chrono::seconds;

class KeyMeters : public ::testing::Test {
 protected:
  KeyMeter meter(KeyLimits limits) {
    return KeyMeter({"sesame", "ci", limits}, places_, metrics_, clock_);
  }
  // How many of `count` requests, each over at once, are admitted.
  static int admitted(KeyMeter& meter, int count) {
    int some = 0;
    for (int i = 0; i < count; ++i)
      some += std::holds_alternative<KeyMeter::Lease>(meter.begin()) ? 1 : 0;
    return some;
  }
  static ApiError refusal(KeyMeter& meter) {
    auto begun = meter.begin();
    EXPECT_TRUE(std::holds_alternative<ApiError>(begun));
    return std::holds_alternative<ApiError>(begun) ? std::get<ApiError>(begun) : ApiError{};
  }
  RequestPlaces places_{.all = 12};
  core::ManualClock clock_;
  ServeMetrics metrics_;
};

TEST_F(KeyMeters, WithoutLimitsAllAreAdmittedAndCounted) {
  KeyMeter free = meter({});
  EXPECT_EQ(admitted(free, 1000), 1000);
  free.prompt(7);
  free.finished(5, engine::FinishReason::kEos, 0.1);
  EXPECT_EQ(free.use().requests, 1000u);
  EXPECT_EQ(free.use().prompt_tokens, 7u);
  EXPECT_EQ(free.use().generation_tokens, 5u);
  EXPECT_EQ(free.use().running, 0);
}

TEST_F(KeyMeters, RequestsAtATime) {
  KeyMeter two = meter({.requests = 2});
  auto first = two.begin();
  auto second = two.begin();
  EXPECT_EQ(two.use().running, 2);
  const ApiError error = refusal(two);
  EXPECT_EQ(error.status, 429);
  EXPECT_EQ(error.code, "rate_limit_exceeded");
  EXPECT_EQ(error.retry_after_s, 1);
  EXPECT_NE(error.message.find("'ci' has 2 requests under way"), std::string::npos);
  EXPECT_EQ(error.message.find("sesame"), std::string::npos);
  first = ApiError{};  // the first one ends
  EXPECT_EQ(two.use().running, 1);
  EXPECT_EQ(admitted(two, 3), 3) << "each is over before the next";
  EXPECT_EQ(two.use().refused, 1u);
}

TEST_F(KeyMeters, NoKeyHasMorePlacesThanAreFree) {
  KeyMeter one = meter({}), two = meter({});
  std::vector<std::variant<KeyMeter::Lease, ApiError>> held;
  const auto take = [&](KeyMeter& from) {
    int some = 0;
    for (; std::holds_alternative<KeyMeter::Lease>(held.emplace_back(from.begin())); ++some) {
    }
    held.pop_back();
    return some;
  };
  places_.shared = true;
  EXPECT_EQ(take(one), 6) << "half of 12";
  EXPECT_EQ(take(two), 3) << "half of what is left";
  EXPECT_NE(refusal(one).message.find("its share"), std::string::npos);
  EXPECT_EQ(refusal(one).status, 429);
  held.clear();
  EXPECT_EQ(places_.taken, 0);
  EXPECT_EQ(take(two), 6);
  places_.shared = false;
  held.clear();
  places_.all = 1;
  for (int i = 0; i < 20; ++i)
    held.push_back(one.begin());
  EXPECT_EQ(one.use().running, 20) << "a key alone shares with nobody";
  held.clear();
}

TEST_F(KeyMeters, RequestsAMinuteComeBackEvenly) {
  KeyMeter sixty = meter({.requests_per_minute = 60});
  EXPECT_EQ(admitted(sixty, 100), 60);
  EXPECT_EQ(refusal(sixty).retry_after_s, 1);
  clock_.advance(seconds(1));
  EXPECT_EQ(admitted(sixty, 100), 1);
  clock_.advance(seconds(10));
  EXPECT_EQ(admitted(sixty, 100), 10);
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(admitted(sixty, 100), 60) << "no more than a minute's worth is saved up";
  KeyMeter rare = meter({.requests_per_minute = 1});
  EXPECT_EQ(admitted(rare, 2), 1);
  EXPECT_EQ(refusal(rare).retry_after_s, 60);
  clock_.advance(seconds(59));
  EXPECT_EQ(admitted(rare, 1), 0);
  EXPECT_EQ(refusal(rare).retry_after_s, 1);
  clock_.advance(seconds(1));
  EXPECT_EQ(admitted(rare, 2), 1);
}

TEST_F(KeyMeters, TokensAreChargedWhenTheyAreKnown) {
  KeyMeter some = meter({.tokens_per_minute = 600});
  EXPECT_EQ(admitted(some, 5), 5);
  some.prompt(100);
  some.finished(499, engine::FinishReason::kLength, 1);
  EXPECT_EQ(admitted(some, 5), 5) << "one token is left";
  some.finished(1200, engine::FinishReason::kLength, 1);  // 1199 too many
  EXPECT_EQ(refusal(some).retry_after_s, 120);
  clock_.advance(seconds(119));
  EXPECT_EQ(admitted(some, 1), 0);
  clock_.advance(seconds(1));
  EXPECT_EQ(admitted(some, 1), 1);
}

// A refused request costs nothing.
TEST_F(KeyMeters, EachLimitCountsByItself) {
  KeyMeter both = meter({.requests_per_minute = 2, .tokens_per_minute = 60});
  both.prompt(60);
  EXPECT_NE(refusal(both).message.find("60 tokens a minute"), std::string::npos);
  clock_.advance(seconds(1));
  EXPECT_EQ(admitted(both, 5), 2);
  EXPECT_NE(refusal(both).message.find("2 requests a minute"), std::string::npos);
}

TEST_F(KeyMeters, MetricsHaveTheNameAndNeverTheKey) {
  KeyMeter one = meter({.requests = 1});
  const auto lease = one.begin();
  EXPECT_EQ(admitted(one, 2), 0);
  one.prompt(3);
  one.finished(4, engine::FinishReason::kEos, 1);
  const std::string page = metrics_.render({}, "m", {one.use()});
  for (const char* line :
       {"troupe_key_requests_total{model_name=\"m\",engine=\"0\",key=\"ci\"} 1\n",
        "troupe_key_refused_total{model_name=\"m\",engine=\"0\",key=\"ci\"} 2\n",
        "key_prompt_tokens_total{model_name=\"m\",engine=\"0\",key=\"ci\"} 3\n",
        "key_generation_tokens_total{model_name=\"m\",engine=\"0\",key=\"ci\"} 4\n",
        "troupe_key_requests_running{model_name=\"m\",engine=\"0\",key=\"ci\"} 1\n",
        "vllm:generation_tokens_total{model_name=\"m\",engine=\"0\"} 4\n"})
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  EXPECT_EQ(page.find("sesame"), std::string::npos);
  EXPECT_EQ(metrics_.render({}, "m").find("troupe_key_"), std::string::npos);
}

}  // namespace
}  // namespace troupe::serving
