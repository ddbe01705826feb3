// `troupe serve` on a tiny mixture of experts: which experts each token chose, as vLLM sends it.
#include "serve_support.hpp"

#include <algorithm>

namespace troupe::test {
namespace {

using nlohmann::json;

// Experts in layers 0 and 2 of three, three of six for each token: two lengths that differ.
std::string make_expert_model(const ScratchFolder& folder) {
  model::ModelSpec spec = long_tiny_spec();
  spec.architecture = "Qwen2MoeForCausalLM";
  spec.layers = 3;
  spec.qkv_bias = true;
  spec.moe.experts = 6;
  spec.moe.experts_per_token = 3;
  spec.moe.ffn = 24;
  spec.moe.shared_ffn = 20;
  spec.moe.dense_layers = {1};
  return make_model(folder, spec);
}

std::string bytes_of_base64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    const auto value = letters.find(c);
    if (value == letters.npos) break;
    word = (word << 6 | static_cast<std::uint32_t>(value)) & 0xffffffu;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(word >> bits & 255u);
  }
  return out;
}

struct Routed {
  std::string header;
  std::vector<int> ids;
};

// What a .npy file of int32 holds.
Routed routed_of(const json& choice) {
  Routed out;
  if (!choice.contains("routed_experts")) return out;
  const std::string bytes = bytes_of_base64(choice["routed_experts"].get<std::string>());
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto size = static_cast<std::size_t>(static_cast<unsigned char>(bytes[8])) +
                    256u * static_cast<unsigned char>(bytes[9]);
  out.header = bytes.substr(10, size);
  for (std::size_t at = 10 + size; at + 4 <= bytes.size(); at += 4)
    out.ids.push_back(static_cast<unsigned char>(bytes[at]));
  return out;
}

const json kExpertsRequest = {
    {"prompt", "which?"}, {"max_tokens", 12}, {"n", 2}, {"seed", 3}, {"ignore_eos", true}};

json request_with(json more) {
  json out = kExpertsRequest;
  out.update(more);
  return out;
}

}  // namespace

TEST(ServeExperts, ComeBackForEachTokenWhenTheyAreAskedFor) {
  Served served({}, &make_expert_model);
  const json plain = served.post("/v1/completions", kExpertsRequest).json();
  ASSERT_TRUE(plain.contains("choices")) << plain.dump();
  EXPECT_FALSE(plain["choices"][0].contains("routed_experts"));
  const json whole =
      served.post("/v1/completions", request_with({{"return_routed_experts", true}})).json();
  ASSERT_EQ(whole["choices"].size(), 2u) << whole.dump();
  const HttpAnswer streamed = served.post(
      "/v1/completions", request_with({{"return_routed_experts", true}, {"stream", true}}));
  std::map<int, Routed> of_stream;
  int ends = 0;
  for (const json& event : events(streamed.body)) {
    const json& choice = event["choices"][0];
    EXPECT_EQ(choice.contains("routed_experts"), !choice["finish_reason"].is_null());
    if (!choice.contains("routed_experts")) continue;
    of_stream[choice["index"]] = routed_of(choice);
    ++ends;
  }
  EXPECT_EQ(ends, 2);
  for (const json& choice : whole["choices"]) {
    EXPECT_EQ(choice["text"], plain["choices"][choice["index"].get<std::size_t>()]["text"]);
    const Routed routed = routed_of(choice);
    EXPECT_NE(routed.header.find("'shape': (12, 2, 3)"), std::string::npos) << routed.header;
    EXPECT_NE(routed.header.find("'<i4'"), std::string::npos);
    ASSERT_EQ(routed.ids.size(), 12u * 2 * 3);
    EXPECT_LT(*std::max_element(routed.ids.begin(), routed.ids.end()), 6);
    EXPECT_GT(*std::max_element(routed.ids.begin(), routed.ids.end()), 2);
    for (std::size_t i = 0; i < routed.ids.size(); i += 3) {
      EXPECT_LT(routed.ids[i], routed.ids[i + 1]);
      EXPECT_LT(routed.ids[i + 1], routed.ids[i + 2]);
    }
    EXPECT_EQ(of_stream[choice["index"]].ids, routed.ids);
  }
  EXPECT_NE(routed_of(whole["choices"][0]).ids, routed_of(whole["choices"][1]).ids);
  // A prompt that is only scored has no tokens of a response.
  const json scored = served
                          .post("/v1/completions", {{"prompt", "which?"},
                                                    {"max_tokens", 0},
                                                    {"echo", true},
                                                    {"return_routed_experts", true}})
                          .json();
  EXPECT_NE(routed_of(scored["choices"][0]).header.find("(0, 2, 3)"), std::string::npos)
      << scored.dump();
}

TEST(ServeExperts, AFlagGivesThemToAllAlsoInChats) {
  const ScratchFolder folder;
  std::ofstream(folder / "chat.jinja") << "{% for m in messages %}{{ m['content'] }}{% endfor %}";
  Served served(
      {"--enable-return-routed-experts", "--chat-template", (folder / "chat.jinja").string()},
      &make_expert_model);
  const json chat =
      served
          .post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "which?"}}}},
                                         {"max_tokens", 5},
                                         {"seed", 1},
                                         {"ignore_eos", true}})
          .json();
  ASSERT_TRUE(chat.contains("choices")) << chat.dump();
  EXPECT_EQ(routed_of(chat["choices"][0]).ids.size(), 5u * 2 * 3);
  const json without =
      served.post("/v1/completions", request_with({{"return_routed_experts", false}})).json();
  EXPECT_FALSE(without["choices"][0].contains("routed_experts"));
}

TEST(ServeExperts, AModelWithoutExpertsRefuses) {
  Served served;
  const HttpAnswer refused =
      served.post("/v1/completions", request_with({{"return_routed_experts", true}}));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"], "return_routed_experts") << refused.body;
  EXPECT_EQ(served.post("/v1/completions", request_with({{"return_routed_experts", 1}})).status,
            400);
  const ScratchFolder folder;
  const Ended ended = troupe_ends({"serve", "--model", make_long_tiny_model(folder), "--port", "0",
                                   "--enable-return-routed-experts"},
                                  folder / "log.txt", 30);
  EXPECT_EQ(ended.status, 2) << ended.text;
  EXPECT_NE(ended.text.find("no experts"), std::string::npos) << ended.text;
}

}  // namespace troupe::test
