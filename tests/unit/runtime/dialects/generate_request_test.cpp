// JSON of clients: what is read, and what is refused by the name of the field.
#include "runtime/dialects/generate_request.hpp"

#include <gtest/gtest.h>

namespace troupe::dialects {
namespace {

GenerateRequest read_by(Read (*reader)(const std::string&, const ServeBounds&),
                        const std::string& body) {
  Read read = reader(body, {});
  if (const auto* error = std::get_if<ApiError>(&read)) {
    ADD_FAILURE() << body << ": " << error->message;
    return {};
  }
  return std::get<GenerateRequest>(read);
}

GenerateRequest completion(const std::string& body) {
  return read_by(&read_completion, body);
}

GenerateRequest chat(const std::string& body) {
  return read_by(&read_chat, body);
}

using Ids = std::vector<std::int32_t>;

TEST(GenerateRequest, TheFourFormsOfPrompts) {
  EXPECT_EQ(completion(R"({"prompt":"a b"})").prompts, std::vector<Prompt>{std::string("a b")});
  EXPECT_EQ(completion(R"({"prompt":["a","b"]})").prompts,
            (std::vector<Prompt>{std::string("a"), std::string("b")}));
  EXPECT_EQ(completion(R"({"prompt":[1,2]})").prompts, std::vector<Prompt>{Ids({1, 2})});
  EXPECT_EQ(completion(R"({"prompt":[[1,2],[3]]})").prompts,
            (std::vector<Prompt>{Ids({1, 2}), Ids({3})}));
}

TEST(GenerateRequest, DefaultsAreOpenAIs) {
  const GenerateRequest request = completion(R"({"prompt":"a","model":null})");
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_EQ(request.sampling.top_p, 1.0f);
  EXPECT_FALSE(request.stream || request.echo || request.logprobs || request.seed);
  EXPECT_EQ(chat(R"({"messages":[{"role":"user","content":"a"}]})").max_tokens, std::nullopt);
}

TEST(GenerateRequest, ReadsSampling) {
  const auto p = completion(R"({"prompt":"a","temperature":0.5,"top_p":0.9,"top_k":-1,"min_p":0.1,
      "presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":1.5,"min_tokens":3,
      "ignore_eos":true,"stop":["x",""],"stop_token_ids":[5],
      "logit_bias":{"9":-100,"3":1.5}})")
                     .sampling;
  EXPECT_EQ(p.temperature, 0.5f);
  EXPECT_EQ(p.top_p, 0.9f);
  EXPECT_EQ(p.top_k, 0);
  EXPECT_EQ(p.min_p, 0.1f);
  EXPECT_EQ(p.presence_penalty, -2.0f);
  EXPECT_EQ(p.frequency_penalty, 2.0f);
  EXPECT_EQ(p.repetition_penalty, 1.5f);
  EXPECT_EQ(p.min_new_tokens, 3);
  EXPECT_TRUE(p.ignore_eos);
  EXPECT_EQ(p.stop_strings, std::vector<std::string>{"x"});
  EXPECT_EQ(p.stop_tokens, Ids{5});
  ASSERT_EQ(p.logit_bias.size(), 2u);  // ascending, whatever their order was
  EXPECT_EQ(p.logit_bias[0].token, 3);
  EXPECT_EQ(p.logit_bias[0].bias, 1.5f);
  EXPECT_EQ(p.logit_bias[1].token, 9);
}

// What lm-eval's local-completions sends to score a text.
TEST(GenerateRequest, ReadsARequestForLogprobs) {
  const GenerateRequest request = completion(
      R"({"model":"m","prompt":[[1,2,3]],"temperature":0,"max_tokens":1,"logprobs":1,
          "seed":1234,"echo":true})");
  EXPECT_TRUE(request.logprobs && request.echo);
  EXPECT_EQ(request.sampling.top_logprobs, 1);
  EXPECT_TRUE(request.sampling.raw_logprobs && request.sampling.prompt_logprobs);
  EXPECT_EQ(request.seed, 1234u);
  EXPECT_TRUE(completion(R"({"prompt":"a","logprobs":0})").logprobs);
  EXPECT_FALSE(completion(R"({"prompt":"a","logprobs":null})").logprobs);
}

TEST(GenerateRequest, ReadsStreams) {
  const GenerateRequest request =
      completion(R"({"prompt":"a","stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_TRUE(request.stream && request.include_usage);
}

TEST(GenerateRequest, ReadsDialogues) {
  const GenerateRequest request = chat(
      R"({"messages":[{"role":"system","content":"s"},
          {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],
          "max_tokens":5,"max_completion_tokens":7,"logprobs":true,"top_logprobs":2,
          "chat_template_kwargs":{"enable_thinking":false},"n":2})");
  EXPECT_EQ(request.messages_json,
            R"([{"role":"system","content":"s"},)"
            R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])")
      << "as written: names keep their order, which a template may show";
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.n, 2);
  EXPECT_TRUE(request.logprobs && request.sampling.raw_logprobs);
  EXPECT_EQ(request.sampling.top_logprobs, 2);
  EXPECT_EQ(request.template_variables_json, R"({"enable_thinking":false})");
}

TEST(GenerateRequest, ReadsWhatIsTrueToTokens) {
  const GenerateRequest request = completion(
      R"({"prompt":[5,6],"return_token_ids":true,"return_tokens_as_token_ids":true,
          "priority":-3,"cache_salt":"a"})");
  EXPECT_TRUE(request.return_token_ids && request.tokens_as_ids);
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.cache_salt, "a");
  EXPECT_FALSE(completion(R"({"prompt":"a"})").return_token_ids);
}

// A template prints integers at any size, and Python's json reads other numbers as doubles.
TEST(GenerateRequest, NumbersOfToolsAndArgumentsAreWhole) {
  const std::string big = "123456789012345678901234567890";
  const GenerateRequest request = chat(
      R"({"messages":[{"role":"user","content":"?"},{"role":"assistant","tool_calls":[
          {"function":{"name":"f","arguments":{"a": )" +
      big + R"(, "b": 0.10}}}]},{"role":"tool","content":"1"}],"tools":[{"type":"function",
          "function":{"name":"f","parameters":{"type":"object","properties":{"a":{"maximum":)" +
      big + R"(}}}}}],"chat_template_kwargs":{"n":-)" + big + "}}");
  EXPECT_NE(request.messages_json.find(R"("arguments":{"a":)" + big + R"(,"b":0.1})"),
            std::string::npos)
      << request.messages_json;
  EXPECT_NE(request.tools_json.find(R"("maximum":)" + big + "}"), std::string::npos)
      << request.tools_json;
  EXPECT_EQ(request.template_variables_json, R"({"n":-)" + big + "}");
}

TEST(GenerateRequest, ReadsToolsAndTheirCalls) {
  const std::string tools =
      R"([{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}])";
  const std::string dialogue =
      R"({"messages":[{"role":"user","content":"1+1?"},{"role":"assistant","content":null,"tool_calls":[
          {"id":"c","type":"function","function":{"name":"add","arguments":"{\"b\": 1, \"a\": 1}"}}]},
          {"role":"tool","tool_call_id":"c","content":"2"}],"tools":)" +
      tools;
  const GenerateRequest request = chat(dialogue + R"(,"parallel_tool_calls":false})");
  EXPECT_TRUE(request.tools && request.one_call);
  EXPECT_EQ(request.tools_json, tools);
  EXPECT_EQ(request.tool_names, std::set<std::string>{"add"});
  EXPECT_NE(request.messages_json.find(R"("arguments":"{\"b\": 1, \"a\": 1}")"), std::string::npos)
      << "as written, since templates differ in the form that they read: " << request.messages_json;
  const GenerateRequest none = chat(dialogue + R"(,"tool_choice":"none"})");
  EXPECT_FALSE(none.tools);
  EXPECT_EQ(none.tools_json, "") << "the model is not told of them";
  EXPECT_FALSE(chat(R"({"messages":[{"role":"user","content":"a"}],"tools":[]})").tools);
}

TEST(GenerateRequest, ReadsADialogueToTokenize) {
  const std::string dialogue =
      R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}],
          "chat_template_kwargs":{"x":1},"add_generation_prompt":false})";
  const auto read = read_tokenize(dialogue, {});
  ASSERT_TRUE(std::holds_alternative<TokenizeRequest>(read)) << std::get<ApiError>(read).message;
  const auto& asked = std::get<TokenizeRequest>(read);
  EXPECT_EQ(asked.tools_json, chat(dialogue).tools_json);
  EXPECT_EQ(asked.template_variables_json, R"({"x":1})");
  EXPECT_FALSE(asked.add_generation_prompt || asked.add_special_tokens);
}

// What the package renderers sends.
TEST(GenerateRequest, ReadsTokensWithTheirSamplingParams) {
  const Read read = read_token_generate(
      R"({"model":"m","token_ids":[1,2],"sampling_params":{"stop_token_ids":[9],"logprobs":1,
          "skip_special_tokens":false,"temperature":0.5,"max_tokens":7,"n":2,"seed":4},
          "cache_salt":"x","priority":1,"return_routed_experts":true})",
      {});
  ASSERT_TRUE(std::holds_alternative<GenerateRequest>(read)) << std::get<ApiError>(read).message;
  const auto& request = std::get<GenerateRequest>(read);
  EXPECT_EQ(request.dialect, Dialect::kTokens);
  EXPECT_EQ(request.prompts, std::vector<Prompt>{Ids({1, 2})});
  EXPECT_EQ(request.sampling.stop_tokens, Ids{9});
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_TRUE(request.logprobs && request.sampling.raw_logprobs && request.tokens_as_ids);
  EXPECT_EQ(request.sampling.top_logprobs, 1);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.n, 2);
  EXPECT_EQ(request.seed, 4u);
  EXPECT_EQ(request.priority, 1);
  EXPECT_TRUE(request.sampling.routed_experts);
}

struct Bad {
  const char* body;
  const char* param;
  const char* says;
};

void expect_refusal(const Bad& bad, const Read& read) {
  const auto* error = std::get_if<ApiError>(&read);
  ASSERT_NE(error, nullptr) << bad.body;
  EXPECT_EQ(error->status, 400) << bad.body;
  EXPECT_EQ(error->param, bad.param) << bad.body << ": " << error->message;
  EXPECT_NE(error->message.find(bad.says), std::string::npos) << error->message;
}

std::string nested(int depth) {
  return R"({"prompt":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
}

TEST(GenerateRequest, RefusesBadCompletionsByName) {
  const Bad table[] = {
      {"", "", "not valid JSON"},
      {"{", "", "not valid JSON"},
      {"[1]", "", "no JSON object"},
      {"{}", "prompt", "is missing"},
      {R"({"prompt":[]})", "prompt", "must be"},
      {R"({"prompt":7})", "prompt", "must be"},
      {R"({"prompt":[1,"a"]})", "prompt", "not a token id"},
      {R"({"prompt":["a",1]})", "prompt", "must be"},
      {R"({"prompt":[-1]})", "prompt", "not a token id"},
      {R"({"prompt":[1.5]})", "prompt", "not a token id"},
      {R"({"prompt":[99999999999]})", "prompt", "not a token id"},
      {R"({"prompt":"a","max_tokens":-1})", "max_tokens", "between"},
      {R"({"prompt":"a","max_tokens":1.5})", "max_tokens", "whole number"},
      {R"({"prompt":"a","max_tokens":18446744073709551615})", "max_tokens", "between"},
      {R"({"prompt":"a","max_tokens":0})", "max_tokens", "echo"},
      {R"({"prompt":"a","temperature":-0.1})", "temperature", "between"},
      {R"({"prompt":"a","temperature":"hot"})", "temperature", "a number"},
      {R"({"prompt":"a","temperature":1e-9})", "temperature", "greedy"},
      {R"({"prompt":"a","top_p":0})", "top_p", "between"},
      {R"({"prompt":"a","top_k":-2})", "top_k", "between"},
      {R"({"prompt":"a","n":0})", "n", "between"},
      {R"({"prompt":"a","n":100000})", "n", "between"},
      {R"({"prompt":"a","best_of":3})", "best_of", "not supported"},
      {R"({"prompt":"a","logprobs":21})", "logprobs", "between"},
      {R"({"prompt":"a","stream":"yes"})", "stream", "true or false"},
      {R"({"prompt":"a","stream_options":{}})", "stream_options", "stream"},
      {R"({"prompt":"a","stream":true,"stream_options":{"usage":true}})", "stream_options.usage",
       "not a field"},
      {R"({"prompt":"a","stop":[1]})", "stop", "strings"},
      {R"({"prompt":"a","stop_token_ids":5})", "stop_token_ids", "list"},
      {R"({"prompt":"a","logit_bias":{"x":1}})", "logit_bias", "token ids"},
      {R"({"prompt":"a","logit_bias":{"1":101}})", "logit_bias", "between"},
      {R"({"prompt":"a","logit_bias":[1]})", "logit_bias", "object"},
      {R"({"prompt":"a","suffix":"b"})", "suffix", "not supported"},
      {R"({"prompt":"a","temprature":1})", "temprature",
       "not a field that this server knows; did you mean 'temperature'?"},
      {R"({"prompt":"a","stream":true,"stream_options":{"include_use":true}})",
       "stream_options.include_use", "did you mean 'stream_options.include_usage'?"},
      {R"({"prompt":"a","zzzzzzzz":1})", "zzzzzzzz", "knows"},
      {R"({"prompt":"a","seed":"1"})", "seed", "whole number"},
      {R"({"prompt":"a","echo":true,"logprobs":1,"n":2})", "n", "not supported"},
  };
  for (const Bad& bad : table)
    expect_refusal(bad, read_completion(bad.body, {}));
  const Read deep = read_completion(nested(1000), {});
  EXPECT_NE(std::get<ApiError>(deep).message.find("nested"), std::string::npos);
}

TEST(GenerateRequest, RefusesBadTokensByName) {
  const Bad table[] = {
      {"{}", "token_ids", "list of token ids"},
      {R"({"token_ids":"a"})", "token_ids", "list of token ids"},
      {R"({"token_ids":[1,-1]})", "token_ids", "not a token id"},
      {R"({"token_ids":[1],"sampling_params":[]})", "sampling_params", "object"},
      {R"({"token_ids":[1],"sampling_params":{"max_tokens":0}})", "sampling_params.max_tokens",
       "between"},
      {R"({"token_ids":[1],"sampling_params":{"logprobs":99}})", "sampling_params.logprobs",
       "between"},
      {R"({"token_ids":[1],"sampling_params":{"bad_words":["x"]}})", "sampling_params.bad_words",
       "not supported"},
      {R"({"token_ids":[1],"sampling_params":{"temprature":1}})", "sampling_params.temprature",
       "did you mean 'sampling_params.temperature'?"},
      {R"({"token_ids":[1],"features":{"a":1}})", "features", "not supported"},
      {R"({"token_ids":[1],"prompt":"a"})", "prompt", "knows"},
      {R"({"token_ids":[1],"priority":1.5})", "priority", "whole number"},
      {R"({"token_ids":[1],"cache_salt":""})", "cache_salt", "not empty"},
  };
  for (const Bad& bad : table)
    expect_refusal(bad, read_token_generate(bad.body, {}));
}

TEST(GenerateRequest, RefusesBadChatsByName) {
  const Bad table[] = {
      {"{}", "messages", "is missing"},
      {R"({"messages":[]})", "messages", "at least one"},
      {R"({"messages":"hi"})", "messages", "list"},
      {R"({"messages":[{"content":"a"}]})", "messages[0]", "role"},
      {R"({"messages":[{"role":"alien","content":"a"}]})", "messages[0].role", "is none of"},
      {R"({"messages":[{"role":"user","content":"a"},{"role":"User","content":"a"}]})",
       "messages[1].role", "is none of"},
      {R"({"messages":[{"role":"user"}]})", "messages[0].content", "is missing"},
      {R"({"messages":[{"role":"system","content":null}]})", "messages[0].content", "is missing"},
      {R"({"messages":[{"role":"assistant"}]})", "messages[0].content", "is missing"},
      {R"({"messages":[{"role":"assistant","tool_calls":[]}]})", "messages[0].content",
       "is missing"},
      {R"({"messages":[{"role":"user","tool_calls":[{}]}]})", "messages[0].content", "is missing"},
      {R"({"messages":[{"role":"user","content":[]}]})", "messages[0].content", "at least one"},
      {R"({"messages":[{"role":"user","content":7}]})", "messages[0].content", "string"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", "messages[0].content",
       "text"},
      {R"({"messages":[{"role":"user","content":"a"}],"top_logprobs":2})", "top_logprobs",
       "logprobs"},
      {R"({"messages":[{"role":"user","content":"a"}],"tools":{}})", "tools", "a list"},
      {R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function"}]})", "tools[0]",
       "a function"},
      {R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"web_search"}]})",
       "tools[0]", "\"type\": \"function\""},
      {R"({"messages":[{"role":"user","content":"a"}],
          "tools":[{"type":"function","function":{"name":""}}]})",
       "tools[0].function.name", "not empty"},
      {R"({"messages":[{"role":"user","content":"a"}],
          "tools":[{"type":"function","function":{"name":"f","parameters":[]}}]})",
       "tools[0].function.parameters", "an object"},
      {R"({"messages":[{"role":"user","content":"a"}],
          "tools":[{"type":"function","function":{"name":"f"}},
                   {"type":"function","function":{"name":"f"}}]})",
       "tools", "two tools of the name 'f'"},
      {R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"required"})", "tool_choice",
       "goes with tools"},
      {R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"any"})", "tool_choice",
       "\"auto\", \"none\", \"required\""},
      {R"({"messages":[{"role":"assistant","tool_calls":[{}]}]})", "messages[0].tool_calls[0]",
       "a function that has a name"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"["}}]}]})",
       "messages[0].tool_calls[0].function.arguments", "JSON object"},
      {R"({"messages":[{"role":"user","content":"a"}],"chat_template":"x"})", "chat_template",
       "server's"},
      {R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"messages":[]}})",
       "chat_template_kwargs", "may not set 'messages'"},
      {R"({"messages":[{"role":"user","content":"a"}],"max_tokens":0})", "max_tokens", "between"},
      {R"({"messages":[{"role":"user","content":"a"}],"prompt":"a"})", "prompt", "not a field"},
  };
  for (const Bad& bad : table)
    expect_refusal(bad, read_chat(bad.body, {}));
}

TEST(GenerateRequest, AnswersThatCallToolsNeedNoContentAndEveryRoleIsTaken) {
  EXPECT_EQ(
      chat(R"({"messages":[{"role":"developer","content":"d"},{"role":"user","content":""},
                    {"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f"}}]},
                    {"role":"tool","content":"t","tool_call_id":"1"}]})")
          .messages_json,
      R"([{"role":"developer","content":"d"},{"role":"user","content":""},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f"}}]},)"
      R"({"role":"tool","content":"t","tool_call_id":"1"}])");
}

std::string list_of(std::size_t count, const std::string& one) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    out += (i == 0 ? "" : ",") + one;
  return out;
}

std::string biases(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i)
    out += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  return out;
}

// What stands behind the bound is no JSON, and nobody ever gets there.
TEST(GenerateRequest, ListsAreCountedWhileTheyAreRead) {
  ServeBounds bounds;
  bounds.tokens_max = 4;
  struct Long {
    std::string body;
    const char* param;
    const char* says;
  };
  const Long table[] = {
      {R"({"logit_bias":{)" + biases(1025), "logit_bias", "more than the 1024 entries"},
      {R"({"stop":[)" + list_of(65, R"("x")"), "stop", "more than the 64 strings"},
      {R"({"stop_token_ids":[)" + list_of(257, "1"), "stop_token_ids", "more than the 256 tokens"},
      {R"({"prompt":[)" + list_of(1025, R"("x")"), "prompt", "more than the 1024 prompts"},
      {R"({"prompt":[)" + list_of(1025, "[1]"), "prompt", "more than the 1024 prompts"},
      {R"({"prompt":[)" + list_of(5, "1"), "prompt", "more than 4 token ids"},
      {R"({"prompt":[[1],[)" + list_of(5, "1"), "prompt", "more than 4 token ids"},
      {R"({"metadata":[)" + list_of(65536, "1"), "metadata", "more than 65536 values"},
      {R"({"messages":[)" + list_of(65537, "{}"), "messages", "more than 65536 values"},
      {R"({"metadata":)" + std::string(64, '['), "", "nested deeper than 64"},
  };
  for (const Long& one : table) {
    const Read read = read_completion(one.body + " and so on", bounds);
    const auto* error = std::get_if<ApiError>(&read);
    ASSERT_NE(error, nullptr) << one.body.substr(0, 40);
    EXPECT_EQ(error->param, one.param) << error->message;
    EXPECT_NE(error->message.find(one.says), std::string::npos) << error->message;
  }
  // The bounds themselves are taken.
  EXPECT_EQ(completion(R"({"prompt":"a","logit_bias":{)" + biases(1024) + "}}")
                .sampling.logit_bias.size(),
            1024u);
  EXPECT_EQ(completion(R"({"prompt":[)" + list_of(1024, R"("x")") + "]}").prompts.size(), 1024u);
  const Read ids = read_completion(R"({"prompt":[[1,2,3,4],[1,2,3,4]]})", bounds);
  EXPECT_EQ(std::get<GenerateRequest>(ids).prompts[1], Prompt(Ids({1, 2, 3, 4})));
  const auto back = read_detokenize(R"({"tokens":[1,2,3,4,5)", bounds);
  EXPECT_EQ(std::get<ApiError>(back).param, "tokens");
}

TEST(GenerateRequest, ErrorsHaveOpenAIsForm) {
  ApiError error;
  error.message = "no \"x\"";
  error.param = "x";
  EXPECT_EQ(
      api_error_json(error),
      R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"x","code":null}})");
  error.status = 503;
  const net::HttpResponse response = api_error_response(error);
  EXPECT_EQ(net::find_header(response.headers, "retry-after"), "1");
  EXPECT_EQ(api_error_of(core::Error{core::ErrorCode::kOverloaded, ""}).status, 503);
  EXPECT_EQ(api_error_of(core::Error{core::ErrorCode::kData, ""}).status, 400);
  EXPECT_EQ(api_error_of(core::Error{core::ErrorCode::kNumeric, ""}).status, 500);
}

}  // namespace
}  // namespace troupe::dialects
