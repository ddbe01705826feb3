// Bodies of Anthropic's Messages: the dialogue that a template gets of them, and refusals by name.
#include "runtime/dialects/readers.hpp"

#include <gtest/gtest.h>

namespace troupe::dialects {
namespace {

GenerateRequest message(const std::string& body) {
  Read read = read_messages_request(body, {});
  if (const auto* error = std::get_if<ApiError>(&read)) {
    ADD_FAILURE() << body << ": " << error->message;
    return {};
  }
  return std::get<GenerateRequest>(read);
}

// A body of one user message and `more` fields.
std::string with(const std::string& more) {
  return R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}])" + more + "}";
}

TEST(MessagesRequest, ADialogueInTheFormOfChats) {
  const std::string tools =
      R"([{"name":"add","description":"a sum","input_schema":{"type":"object"}},{"type":"custom",
          "name":"b","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}])";
  const GenerateRequest request = message(R"({"model":"m","max_tokens":5,
      "system":[{"type":"text","text":"be "},{"type":"text","text":"brief"}],"messages":[
      {"role":"user","content":"1+1?"},
      {"role":"assistant","content":[{"type":"text","text":"Let me."},
        {"type":"tool_use","id":"t1","name":"add","input":{"b":1,"a":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
        {"type":"text","text":"2"}],"is_error":false},{"type":"tool_result","tool_use_id":"t2"},
        {"type":"text","text":"So"},{"type":"text","text":"?"}]},
      {"role":"system","content":"hurry"}],"tools":)" +
                                          tools + "}");
  EXPECT_EQ(request.dialect, Dialect::kMessages);
  EXPECT_EQ(request.messages_json,
            R"([{"role":"system","content":"be brief\n\nhurry"},{"role":"user","content":"1+1?"},)"
            R"({"role":"assistant","content":"Let me.","tool_calls":[{"id":"t1","type":"function",)"
            R"("function":{"name":"add","arguments":{"b":1,"a":1}}}]},)"
            R"({"role":"tool","tool_call_id":"t1","content":"2"},)"
            R"({"role":"tool","tool_call_id":"t2","content":""},{"role":"user","content":"So?"}])");
  EXPECT_EQ(request.tools_json,
            R"([{"type":"function","function":{"name":"add","description":"a sum",)"
            R"("parameters":{"type":"object"}}},)"
            R"({"type":"function","function":{"name":"b","parameters":{"type":"object"}}}])");
  EXPECT_EQ(request.tool_names, (std::set<std::string>{"add", "b"}));
  EXPECT_TRUE(request.tools);
  EXPECT_FALSE(request.one_call || request.add_special_tokens);
}

// Wherever a system text is said, it joins the leading one, which is what strict templates take.
TEST(MessagesRequest, SystemTextsAreOneAndLead) {
  const std::string user = R"({"role":"user","content":"a"})";
  const std::string answer = R"({"role":"assistant","content":"b"})";
  const auto said = [](const std::string& text) {
    return R"({"role":"system","content":")" + text + R"("})";
  };
  const auto read = [](const std::string& messages, const std::string& more = "") {
    return message(R"({"max_tokens":5,"messages":[)" + messages + "]" + more + "}").messages_json;
  };
  EXPECT_EQ(read(user + "," + said("x")), "[" + said("x") + "," + user + "]");
  EXPECT_EQ(read(user + "," + answer + "," + said("x") + "," + user),
            "[" + said("x") + "," + user + "," + answer + "," + user + "]");
  EXPECT_EQ(read(said("x") + "," + user, R"(,"system":"s")"),
            "[" + said(R"(s\n\nx)") + "," + user + "]");
  EXPECT_EQ(read(user + R"(,{"role":"system","content":[{"type":"text","text":"x"}]},)" + answer +
                     "," + user + "," + said("y"),
                 R"(,"system":[{"type":"text","text":"s"}])"),
            "[" + said(R"(s\n\nx\n\ny)") + "," + user + "," + answer + "," + user + "]");
  EXPECT_EQ(read(said("x")), "[" + said("x") + "]");
}

TEST(MessagesRequest, SamplingAndExtensions) {
  const GenerateRequest request = message(with(
      R"(,"stop_sequences":["x","y"],"temperature":0.5,"top_p":0.9,"top_k":3,"stream":true,
         "seed":4,"min_p":0.1,"return_token_ids":true,"logprobs":true,"top_logprobs":2,"priority":1,
         "cache_salt":"s","metadata":{"user_id":"u"},"thinking":{"type":"disabled"},
         "chat_template_kwargs":{"enable_thinking":false},"service_tier":"auto","container":null)"));
  EXPECT_EQ(request.max_tokens, 5);
  EXPECT_EQ(request.sampling.stop_strings, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.9f);
  EXPECT_EQ(request.sampling.top_k, 3);
  EXPECT_EQ(request.sampling.min_p, 0.1f);
  EXPECT_EQ(request.seed, 4u);
  EXPECT_EQ(request.priority, 1);
  EXPECT_EQ(request.cache_salt, "s");
  EXPECT_EQ(request.sampling.top_logprobs, 2);
  EXPECT_TRUE(request.stream && request.return_token_ids && request.logprobs &&
              request.sampling.raw_logprobs);
  EXPECT_EQ(request.template_variables_json, R"({"enable_thinking":false})");
}

TEST(MessagesRequest, ChoicesOfTools) {
  const std::string tools = R"(,"tools":[{"name":"add","input_schema":{}}])";
  const GenerateRequest one =
      message(with(tools + R"(,"tool_choice":{"type":"auto","disable_parallel_tool_use":true})"));
  EXPECT_TRUE(one.tools && one.one_call);
  const GenerateRequest none = message(with(tools + R"(,"tool_choice":{"type":"none"})"));
  EXPECT_FALSE(none.tools);
  EXPECT_EQ(none.tools_json, "") << "the model is not told of them";
}

TEST(MessagesRequest, CountsWhatAMessageWouldRead) {
  const std::string more = R"(,"system":"s","tools":[{"name":"add","input_schema":{}}])";
  const GenerateRequest asked = message(with(more));
  const std::string body = R"({"messages":[{"role":"user","content":"a"}])" + more + "}";
  const auto read = read_count_tokens(body, {});
  ASSERT_TRUE(std::holds_alternative<TokenizeRequest>(read)) << std::get<ApiError>(read).message;
  const auto& counted = std::get<TokenizeRequest>(read);
  EXPECT_EQ(counted.messages_json, asked.messages_json);
  EXPECT_EQ(counted.tools_json, asked.tools_json);
  EXPECT_EQ(counted.add_special_tokens, asked.add_special_tokens);
  EXPECT_EQ(std::get<ApiError>(read_count_tokens(with(""), {})).param, "max_tokens");
}

}  // namespace
}  // namespace troupe::dialects
