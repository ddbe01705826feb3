// `troupe serve` and numbers that are none: weights that hold one are refused by name before
// anything is served, and a request whose own numbers overflow fails alone.
#include "serve_support.hpp"

#include <limits>

namespace troupe::test {
namespace {

using nlohmann::json;

// One dimension of the residual stream is there for 'z' alone: it is 1 in that token's embedding
// and 0 in all others, and attention adds nothing to it. The feed-forward network multiplies it
// beyond the largest float, so the logits that follow a 'z' are not finite, and all others are.
std::string make_overflowing_model(const ScratchFolder& folder) {
  return make_model(folder, long_tiny_spec(), [](model::ParamStore& params) {
    const auto& spec = params.spec();
    const std::int64_t mark = spec.hidden - 1;
    const auto embedding = params.view("model.embed_tokens.weight");
    for (std::int64_t token = 0; token < spec.vocab; ++token)
      embedding[static_cast<std::size_t>(token * spec.hidden + mark)] = token == 'z' ? 1.0f : 0.0f;
    const std::string layer = "model.layers.0.";
    const auto out = params.view(layer + "self_attn.o_proj.weight");
    for (std::int64_t i = 0; i < spec.heads * spec.head_dim; ++i)
      out[static_cast<std::size_t>(mark * spec.heads * spec.head_dim + i)] = 0.0f;
    params.view(layer + "post_attention_layernorm.weight")[static_cast<std::size_t>(mark)] = 1e30f;
    for (const char* name : {"mlp.gate_proj.weight", "mlp.up_proj.weight"}) {
      const auto matrix = params.view(layer + name);
      for (std::int64_t i = 0; i < spec.ffn; ++i)
        matrix[static_cast<std::size_t>(i * spec.hidden + mark)] = 1e30f;
    }
  });
}

// Never draws a 'z'.
const json kGood = {{"prompt", "hello"}, {"max_tokens", 3000}, {"n", 2},
                    {"seed", 4},         {"ignore_eos", true}, {"logit_bias", {{"122", -100}}}};

}  // namespace

TEST(ServeNumbers, AWeightThatIsNoNumberIsRefusedByName) {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const ScratchFolder folder;
    const std::string tensor = "model.layers.0.mlp.down_proj.weight";
    const std::string path = make_model(folder, long_tiny_spec(), [&](model::ParamStore& params) {
      params.view(tensor)[static_cast<std::size_t>(3 * params.spec().ffn + 5)] = wrong;
    });
    const Ended ended =
        troupe_ends({"serve", "--model", path, "--port", "0"}, folder / "log.txt", 30);
    EXPECT_EQ(ended.status, 4) << ended.text;
    EXPECT_NE(
        ended.text.find("tensor " + tensor + " holds " + std::to_string(wrong) + " at [3, 5]"),
        std::string::npos)
        << ended.text;
    EXPECT_NE(ended.text.find("model.safetensors"), std::string::npos) << ended.text;
    EXPECT_EQ(ended.text.find("/v1"), std::string::npos) << "it said that it serves";
  }
}

TEST(ServeNumbers, AWakeThatFindsBadWeightsSaysSoAndCanBeRepeated) {
  std::filesystem::path file;
  Served served({}, [&](const ScratchFolder& folder) {
    file = std::filesystem::path(make_long_tiny_model(folder)) / "model.safetensors";
    return file.parent_path().string();
  });
  const json request = {{"prompt", "a"}, {"max_tokens", 20}, {"seed", 1}};
  const json before = served.post("/v1/completions", request).json()["choices"];
  ASSERT_EQ(served.call("POST", "/sleep?level=2").status, 200);
  const ScratchFolder other;
  const std::string broken = make_model(other, long_tiny_spec(), [](model::ParamStore& params) {
    params.view("model.norm.weight")[2] = std::numeric_limits<float>::quiet_NaN();
  });
  const auto whole = std::filesystem::path(other / "whole.safetensors");
  std::filesystem::copy(file, whole);
  const auto put = [&](const std::filesystem::path& from) {
    std::filesystem::copy(from, file, std::filesystem::copy_options::overwrite_existing);
  };
  put(std::filesystem::path(broken) / "model.safetensors");
  for (int i = 0; i < 2; ++i) {
    const HttpAnswer failed = served.call("POST", "/wake_up");
    EXPECT_EQ(failed.status, 400);
    EXPECT_NE(failed.body.find("tensor model.norm.weight holds nan at [2]"), std::string::npos)
        << failed.body;
    EXPECT_EQ(served.call("GET", "/is_sleeping").json()["is_sleeping"], true);
  }
  EXPECT_EQ(served.post("/v1/completions", request).status, 503);
  put(whole);
  const HttpAnswer woken = served.call("POST", "/wake_up");
  EXPECT_EQ(woken.status, 200) << woken.body;
  EXPECT_GT(woken.json()["weights"]["after_bytes"], 0) << woken.body;
  EXPECT_EQ(served.post("/v1/completions", request).json()["choices"], before);
}

TEST(ServeNumbers, ARequestThatOverflowsFailsAloneAndOthersKeepTheirBits) {
  Served served({}, &make_overflowing_model);
  const json alone = served.post("/v1/completions", kGood).json();
  ASSERT_EQ(alone["usage"]["completion_tokens"], 6000) << alone.dump();
  Caller beside(served.port);
  beside.send(http_request("POST", "/v1/completions", kGood.dump()));
  ASSERT_TRUE(within(30, [&] { return served.metric("vllm:num_requests_running") >= 2; }));

  for (int i = 0; i < 3; ++i) {
    const HttpAnswer bad =
        served.post("/v1/completions", {{"prompt", "jazz"}, {"max_tokens", 4}, {"n", 3}});
    EXPECT_EQ(bad.status, 500) << bad.body;
    EXPECT_EQ(
        bad.json()["error"]["message"].get<std::string>().find(
            "the model gives no finite numbers for this prompt, since its weights are damaged "
            "or overflow"),
        0u)
        << bad.body;
    EXPECT_EQ(bad.json()["error"]["type"], "server_error");
    EXPECT_NE(bad.json()["error"]["message"].get<std::string>().find("not finite"),
              std::string::npos)
        << bad.body;
  }
  // Of several prompts one is enough.
  EXPECT_EQ(served.post("/v1/completions", {{"prompt", {"a", "z"}}, {"max_tokens", 2}}).status,
            500);
  // In the middle of a stream: the 'z' that it drew was sent, then comes the error.
  const HttpAnswer cut = served.post(
      "/v1/completions",
      {{"prompt", "a"}, {"max_tokens", 9}, {"stream", true}, {"logit_bias", {{"122", 100}}}});
  EXPECT_EQ(cut.status, 200);
  const std::vector<json> told = events(cut.body);
  ASSERT_EQ(told.size(), 2u) << cut.body;
  EXPECT_EQ(told[0]["choices"][0]["text"], "z");
  EXPECT_NE(told[1]["error"]["message"].get<std::string>().find("not finite"), std::string::npos);

  EXPECT_EQ(beside.answer().json()["choices"], alone["choices"]);
  EXPECT_EQ(served.metric("vllm:request_success_total{model_name=\"tiny\",engine=\"0\","
                          "finished_reason=\"abort\"}"),
            0.0)
      << "what failed did not succeed";
  EXPECT_EQ(served.call("GET", "/health").status, 200);
  ASSERT_TRUE(within(30, [&] { return served.metric("vllm:num_requests_running") == 0; }));
  EXPECT_EQ(served.metric("vllm:num_requests_waiting"), 0.0);
  EXPECT_EQ(served.metric("vllm:kv_cache_usage_perc"), 0.0);
}

}  // namespace troupe::test
