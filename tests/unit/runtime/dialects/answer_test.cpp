// Answers of hand-made samples, over a tokenizer of bytes: texts, usage, log-probs, events.
#include "tests/unit/runtime/dialects/answers.hpp"

namespace troupe::dialects {
namespace {

using engine::FinishReason;
using nlohmann::json;
using test::Answers;
using test::kEnd;

TEST_F(Answers, AWholeCompletion) {
  GenerateRequest request;
  request.max_tokens = 9;
  const auto made = answer(request, prompts_);
  ASSERT_TRUE(made->finish(0, sample("hi", FinishReason::kEos)));
  EXPECT_EQ(json::parse(made->body()), json::parse(R"({"id":"cmpl-1","object":"text_completion",
      "created":7,"model":"tiny","system_fingerprint":"v12","choices":[{"index":0,"text":"hi",
      "logprobs":null,"finish_reason":"stop","stop_reason":null}],
      "usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}})"));
}

TEST_F(Answers, LogprobsOfAnEchoedPromptBeginWithNull) {
  GenerateRequest request;
  request.max_tokens = 1;
  request.echo = request.logprobs = true;
  request.sampling.top_logprobs = 1;
  const auto made = answer(request, prompts_);
  engine::Sample one = sample("c", FinishReason::kLength);
  one.top_logprobs = {{'d', -0.25f}};
  one.prompt_logprobs = {-2.0f};
  one.prompt_top_logprobs = {{'b', -2.0f}};
  ASSERT_TRUE(made->finish(0, one));
  const json choice = json::parse(made->body())["choices"][0];
  EXPECT_EQ(choice["text"], "abc");
  EXPECT_EQ(choice["logprobs"], json::parse(R"({"text_offset":[0,1,2],
      "tokens":["a","b","c"],"token_logprobs":[null,-2.0,-0.5],
      "top_logprobs":[null,{"b":-2.0},{"d":-0.25,"c":-0.5}]})"));
}

TEST_F(Answers, MaxTokensZeroGivesThePromptAlone) {
  GenerateRequest request;
  request.max_tokens = 0;
  request.echo = true;
  const auto made = answer(request, prompts_);
  ASSERT_TRUE(made->finish(0, sample("c", FinishReason::kLength)));
  const json body = json::parse(made->body());
  EXPECT_EQ(body["choices"][0]["text"], "ab");
  EXPECT_EQ(body["usage"]["completion_tokens"], 0);
}

TEST_F(Answers, AStopTokenHasNoTextAndIsNamed) {
  GenerateRequest request;
  request.max_tokens = 9;
  request.sampling.stop_tokens = {'!'};
  for (const bool kept : {false, true}) {
    request.include_stop = kept;
    const auto made = answer(request, prompts_);
    ASSERT_TRUE(made->finish(0, sample("hi!", FinishReason::kStop)));
    const json choice = json::parse(made->body())["choices"][0];
    EXPECT_EQ(choice["text"], kept ? "hi!" : "hi");
    EXPECT_EQ(choice["stop_reason"], '!');
  }
}

TEST_F(Answers, AGuideThatEndedTheResponseSaysWhy) {
  GenerateRequest request;
  request.max_tokens = 9;
  engine::Sample ended = sample("{", FinishReason::kAborted);
  ended.guide_error = "no token goes on";
  const auto made = answer(request, prompts_);
  ASSERT_TRUE(made->finish(0, ended));
  const json choice = json::parse(made->body())["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "abort");
  EXPECT_EQ(choice["stop_reason"], "no token goes on");
}

TEST_F(Answers, WithoutATokenizerThereAreIdsAndNoText) {
  model_->tokenizer.reset();
  GenerateRequest request;
  request.max_tokens = 9;
  request.logprobs = true;
  const auto made = answer(request, prompts_);
  ASSERT_TRUE(made->finish(0, sample("hi", FinishReason::kEos)));
  const json choice = json::parse(made->body())["choices"][0];
  EXPECT_EQ(choice["text"], "");
  EXPECT_EQ(choice["token_ids"], json({'h', 'i', kEnd}));
  EXPECT_EQ(choice["logprobs"]["tokens"], json({"token_id:104", "token_id:105", "token_id:256"}));
  request.stream = true;
  const auto streamed = answer(request, prompts_);
  auto grown = streamed->grow_event(0, sample("h", FinishReason::kLength));
  auto ended = streamed->finish_event(0, sample("hi", FinishReason::kEos));
  ASSERT_TRUE(grown && ended);
  const auto events = read(*grown + *ended);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["choices"][0]["token_ids"], json({'h'}));
  EXPECT_EQ(events[1]["choices"][0]["token_ids"], json({'i', kEnd}));
}

TEST_F(Answers, EventsOfAChat) {
  GenerateRequest request;
  request.dialect = Dialect::kChat;
  request.stream = request.include_usage = request.logprobs = true;
  const auto made = answer(request, prompts_);
  auto grown = made->grow_event(0, sample("h", FinishReason::kLength));
  ASSERT_TRUE(grown);
  auto ended = made->finish_event(0, sample("hi", FinishReason::kEos));
  ASSERT_TRUE(ended);
  const auto events = read(*grown + *ended + made->last_events());
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["choices"][0]["delta"], (json{{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(events[1]["choices"][0]["delta"], (json{{"content", "h"}}));
  EXPECT_EQ(events[1]["choices"][0]["logprobs"]["content"][0]["bytes"], json({'h'}));
  EXPECT_EQ(events[1]["choices"][0]["finish_reason"], nullptr);
  EXPECT_EQ(events[2]["choices"][0]["delta"], (json{{"content", "i"}}));
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "stop");
  ASSERT_EQ(events[2]["choices"][0]["logprobs"]["content"].size(), 2u);  // the end token's, too
  EXPECT_EQ(events[2]["choices"][0]["logprobs"]["content"][0]["logprob"], -1.0);
  EXPECT_EQ(events[2]["usage"], nullptr);
  EXPECT_TRUE(events[3]["choices"].empty());
  EXPECT_EQ(events[3]["usage"]["completion_tokens"], 3);
  EXPECT_EQ(events[4], "[DONE]");
}

constexpr const char* kCall =
    "So:<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>";

TEST_F(Answers, CallsOfTools) {
  model_->tool_format = ToolFormat::kHermes;
  GenerateRequest request;
  request.dialect = Dialect::kChat;
  request.tools = true;
  const auto made = answer(request, prompts_);
  ASSERT_TRUE(made->finish(0, sample(kCall, FinishReason::kEos)));
  const json choice = json::parse(made->body())["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "So:");
  const json call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"], (json{{"name", "add"}, {"arguments", "{\"a\":1}"}}));
  EXPECT_EQ(call["id"].get<std::string>().size(), 29u);
  EXPECT_FALSE(call.contains("index"));

  const auto cut = answer(request, prompts_);
  ASSERT_TRUE(cut->finish(0, sample(std::string(kCall).substr(0, 30), FinishReason::kLength)));
  const json part = json::parse(cut->body())["choices"][0];
  EXPECT_EQ(part["finish_reason"], "length");
  EXPECT_EQ(part["message"]["content"], std::string(kCall).substr(0, 30)) << "nothing is lost";

  request.tools = false;
  const auto text = answer(request, prompts_);
  ASSERT_TRUE(text->finish(0, sample(kCall, FinishReason::kEos)));
  EXPECT_EQ(json::parse(text->body())["choices"][0]["message"]["content"], kCall);
}

TEST_F(Answers, CallsInEvents) {
  model_->tool_format = ToolFormat::kHermes;
  GenerateRequest request;
  request.dialect = Dialect::kChat;
  request.tools = request.stream = true;
  for (const bool one : {false, true}) {
    request.one_call = one;
    const auto made = answer(request, prompts_);
    const std::string whole = std::string(kCall) + std::string(kCall).substr(3) + " ";
    std::string events;
    for (const char c : whole)
      events += *made->grow_event(0, sample(std::string(1, c), FinishReason::kLength));
    events += *made->finish_event(0, sample(whole, FinishReason::kEos));
    std::string content, finish;
    std::vector<json> calls;
    for (const json& event : read(events)) {
      const json& choice = event["choices"][0];
      content += choice["delta"].value("content", "");
      for (const json& call : choice["delta"].value("tool_calls", json::array()))
        calls.push_back(call);
      if (!choice["finish_reason"].is_null()) finish = choice["finish_reason"];
    }
    EXPECT_EQ(content, "So:");
    EXPECT_EQ(finish, "tool_calls");
    ASSERT_EQ(calls.size(), one ? 1u : 2u);
    EXPECT_EQ(calls[0]["index"], 0);
    EXPECT_EQ(calls[0]["function"]["arguments"], "{\"a\":1}");
    if (one) continue;
    EXPECT_EQ(calls[1]["index"], 1);
    EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  }
}

// vLLM's places: with the choice of a completion, with the object of a chat; in streams once.
TEST_F(Answers, IdsOfPromptAndResponseBesideTheText) {
  GenerateRequest request;
  request.max_tokens = 9;
  request.return_token_ids = true;
  const auto whole = answer(request, prompts_);
  ASSERT_TRUE(whole->finish(0, sample("hi", FinishReason::kEos)));
  json body = json::parse(whole->body());
  EXPECT_EQ(body["choices"][0]["text"], "hi");
  EXPECT_EQ(body["choices"][0]["prompt_token_ids"], json({'a', 'b'}));
  EXPECT_EQ(body["choices"][0]["token_ids"], json({'h', 'i', kEnd}));
  EXPECT_FALSE(body.contains("prompt_token_ids"));
  for (const Dialect dialect : {Dialect::kCompletion, Dialect::kChat}) {
    request.dialect = dialect;
    request.stream = true;
    const auto made = answer(request, prompts_);
    auto grown = made->grow_event(0, sample("\xc3", FinishReason::kLength));
    auto ended = made->finish_event(0, sample("\xc3\xbc", FinishReason::kEos));
    ASSERT_TRUE(grown && ended);
    const auto events = read(*grown + *ended);
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const json& place = dialect == Dialect::kChat ? events[i] : events[i]["choices"][0];
      EXPECT_EQ(place.contains("prompt_token_ids"), i == 0);
      for (const json& id : events[i]["choices"][0].value("token_ids", json::array()))
        ids.push_back(id);
    }
    EXPECT_EQ(ids, (std::vector<std::int32_t>{0xc3, 0xbc, kEnd}))
        << "half a character is sent, too";
  }
}

TEST_F(Answers, LogprobsMayNameTokensByTheirIds) {
  GenerateRequest request;
  request.max_tokens = 9;
  request.logprobs = request.tokens_as_ids = true;
  const auto made = answer(request, prompts_);
  ASSERT_TRUE(made->finish(0, sample("hi", FinishReason::kLength)));
  const json logprobs = json::parse(made->body())["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], json({"token_id:104", "token_id:105"}));
  EXPECT_EQ(logprobs["text_offset"], json({0, 1})) << "in the text, not in the names";
}

// The whole of what vLLM's clients of /inference/v1/generate read.
TEST_F(Answers, TokensAlone) {
  GenerateRequest request;
  request.dialect = Dialect::kTokens;
  request.max_tokens = 9;
  request.logprobs = request.tokens_as_ids = request.return_token_ids = true;
  const auto made = answer(request, prompts_);
  ASSERT_TRUE(made->finish(0, sample("h", FinishReason::kEos)));
  EXPECT_EQ(json::parse(made->body()), json::parse(R"({"request_id":"cmpl-1",
      "system_fingerprint":"v12","choices":[{"index":0,"token_ids":[104,256],"logprobs":{
      "refusal":null,"content":[
      {"token":"token_id:104","logprob":-0.5,"bytes":[104],"top_logprobs":[]},
      {"token":"token_id:256","logprob":-1.0,"bytes":[60,124,101,110,100,124,62],
       "top_logprobs":[]}]},
      "finish_reason":"stop","stop_reason":null}],"prompt_token_ids":[97,98],
      "usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4}})"));
}

// A character of two tokens comes out whole, in the event of its second one.
TEST_F(Answers, CharactersAreNeverCut) {
  GenerateRequest request;
  request.stream = true;
  request.max_tokens = 9;
  const auto made = answer(request, prompts_);
  EXPECT_EQ(*made->grow_event(0, sample("\xc3", FinishReason::kLength)), "");
  const auto events = read(*made->grow_event(0, sample("\xbc", FinishReason::kLength)));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "\xc3\xbc");
}

}  // namespace
}  // namespace troupe::dialects
