// `troupe serve` paused, put to sleep and woken under vLLM's names: requests under way keep their
// bits, new ones are told, memory is given back.
#include "serve_support.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

// Long enough to be seen running by a client that gets a processor late.
const json kRequest = {{"prompt", "ab"}, {"max_tokens", 12000}, {"seed", 3}, {"ignore_eos", true}};

// The choices of an answer; the answer itself when there are none.
json choices_of(const HttpAnswer& answer) {
  const json body = answer.json();
  return body.contains("choices") ? body["choices"] : body;
}

class ServeControl : public ::testing::Test {
 protected:
  json say(const std::string& path, int status = 200) {
    const HttpAnswer answer = served_.call("POST", path);
    EXPECT_EQ(answer.status, status) << path << ": " << answer.body;
    return answer.json();
  }
  double running() const { return served_.metric("vllm:num_requests_running"); }

  Served served_;
};

}  // namespace

TEST_F(ServeControl, APausedRequestGoesOnWithItsBits) {
  const json alone = choices_of(served_.post("/v1/completions", kRequest));
  for (const std::string mode : {"keep", "recompute"}) {
    Caller caller(served_.port);
    caller.send(http_request("POST", "/v1/completions", kRequest.dump()));
    ASSERT_TRUE(within(30, [&] { return running() == 1; }));
    say("/pause?mode=" + mode);
    const double drawn = served_.metric("vllm:generation_tokens_total");
    EXPECT_EQ(served_.metric("vllm:generation_tokens_total"), drawn) << mode;
    EXPECT_EQ(running(), mode == "keep" ? 1 : 0) << "recompute: its blocks are free";
    EXPECT_EQ(served_.call("GET", "/is_paused").json()["is_paused"], true);
    say("/resume");
    EXPECT_EQ(choices_of(caller.answer()), alone) << mode;
  }
  EXPECT_EQ(served_.call("POST", "/resume").status, 400) << "it is not paused";
  EXPECT_EQ(served_.call("POST", "/pause?mode=slowly").status, 400);
}

TEST_F(ServeControl, PauseWithAbortReturnsWhatThereIs) {
  Caller caller(served_.port);
  json request = kRequest;
  request["max_tokens"] = 60000;
  caller.send(http_request("POST", "/v1/completions", request.dump()));
  ASSERT_TRUE(within(30, [&] { return running() == 1; }));
  say("/pause?mode=abort");
  const json body = caller.answer().json();
  ASSERT_TRUE(body.contains("choices")) << body.dump();
  EXPECT_EQ(body["choices"][0]["finish_reason"], "abort");
  EXPECT_LT(body["usage"]["completion_tokens"], 60000);
  EXPECT_EQ(running(), 0);
  say("/resume");
}

TEST_F(ServeControl, SleepGivesMemoryBackAndWakingChangesNoBit) {
  const json alone = choices_of(served_.post("/v1/completions", kRequest));
  for (const std::string level : {"1", "2"}) {
    Caller caller(served_.port);
    caller.send(http_request("POST", "/v1/completions", kRequest.dump()));
    ASSERT_TRUE(within(30, [&] { return running() == 1; }));
    const json report = say("/sleep?level=" + level);
    EXPECT_GT(report["kv"]["before_bytes"], 0) << report.dump();
    EXPECT_EQ(report["kv"]["after_bytes"], 0);
    EXPECT_EQ(report["weights"]["after_bytes"] == 0, level == "2") << report.dump();
    EXPECT_EQ(served_.call("GET", "/is_sleeping").json()["is_sleeping"], true);
    EXPECT_EQ(served_.post("/v1/completions", kRequest).status, 503) << "it sleeps";
    say("/sleep?level=" + level, 400);
    if (level == "2") {
      say("/wake_up?tags=kv_cache", 400);  // weights come first
      say("/wake_up?tags=weights");
      say("/wake_up?tags=kv_cache");
    } else {
      say("/wake_up");
    }
    EXPECT_EQ(served_.call("GET", "/is_sleeping").json()["is_sleeping"], false);
    EXPECT_EQ(choices_of(caller.answer()), alone) << level;
  }
}

}  // namespace troupe::test
