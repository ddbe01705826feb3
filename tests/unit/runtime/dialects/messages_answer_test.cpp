// Answers in Anthropic's format of hand-made samples: blocks, reasons, events, ids.
#include "tests/unit/runtime/dialects/answers.hpp"

namespace troupe::dialects {
namespace {

using engine::FinishReason;
using nlohmann::json;
using test::kEnd;

constexpr const char* kCalls =
    "So:\n<tool_call>{\"name\":\"add\",\"arguments\":{\"b\":1,\"a\":2}}</tool_call> then"
    "<tool_call>{\"name\":\"stop\"}</tool_call>\n";

class MessagesAnswers : public test::Answers {
 protected:
  MessagesAnswers() {
    model_->tool_format = ToolFormat::kHermes;
    request_.dialect = Dialect::kMessages;
    request_.max_tokens = 9;
  }
  json whole(const std::string& text, FinishReason finish) {
    const auto made = answer(request_, prompts_);
    EXPECT_TRUE(made->finish(0, sample(text, finish)));
    return json::parse(made->body());
  }
  // The events of the same, sent byte by byte. Checks that each is named by its type.
  std::vector<json> streamed(const std::string& text, FinishReason finish) {
    const auto made = answer(request_, prompts_);
    std::string events;
    for (const char c : text)
      events += *made->grow_event(0, sample(std::string(1, c), FinishReason::kLength));
    events += *made->finish_event(0, sample(text, finish)) + made->last_events();
    std::vector<json> out;
    for (std::size_t at = 0; at < events.size();) {
      const auto data = events.find("\ndata: ", at), end = events.find("\n\n", at);
      out.push_back(json::parse(events.substr(data + 7, end - data - 7)));
      EXPECT_EQ(events.substr(at, data - at), "event: " + out.back()["type"].get<std::string>());
      at = end + 2;
    }
    return out;
  }
  // The message that a client puts together from the events. Checks their order.
  static json together(const std::vector<json>& events) {
    json message;
    bool open = false;
    for (const json& event : events) {
      const std::string type = event["type"];
      if (type == "message_start") {
        EXPECT_TRUE(message.is_null());
        message = event["message"];
        continue;
      }
      json& content = message["content"];
      if (type == "content_block_start") {
        EXPECT_FALSE(std::exchange(open, true));
        EXPECT_EQ(event["index"], content.size());
        content.push_back(event["content_block"]);
        if (content.back()["type"] == "tool_use") {
          EXPECT_EQ(content.back()["input"], json::object());
          content.back()["input"] = "";
        }
      } else if (type == "content_block_delta") {
        EXPECT_TRUE(open);
        EXPECT_EQ(event["index"], content.size() - 1);
        const bool text = event["delta"]["type"] == "text_delta";
        const char* const field = text ? "text" : "input";
        content.back()[field] = content.back()[field].get<std::string>() +
                                event["delta"][text ? "text" : "partial_json"].get<std::string>();
      } else if (type == "content_block_stop") {
        EXPECT_TRUE(std::exchange(open, false));
        if (content.back()["type"] == "tool_use")
          content.back()["input"] = json::parse(content.back()["input"].get<std::string>());
      } else if (type == "message_delta") {
        EXPECT_FALSE(open);
        message.update(event["delta"]);
        message["usage"].update(event["usage"]);
        for (const auto& [name, value] : event.items()) {
          if (name != "type" && name != "delta" && name != "usage") message[name] = value;
        }
      } else {
        EXPECT_EQ(type, "message_stop");
        EXPECT_EQ(&event, &events.back());
      }
    }
    return message;
  }
  GenerateRequest request_;
};

TEST_F(MessagesAnswers, AWholeMessage) {
  EXPECT_EQ(whole("hi", FinishReason::kEos), json::parse(R"({"id":"cmpl-1","type":"message",
      "role":"assistant","model":"tiny","content":[{"type":"text","text":"hi"}],
      "stop_reason":"end_turn","stop_sequence":null,
      "usage":{"input_tokens":2,"output_tokens":3}})"));
}

TEST_F(MessagesAnswers, ReasonsOfTheEnd) {
  EXPECT_EQ(whole("hi", FinishReason::kLength)["stop_reason"], "max_tokens");
  EXPECT_EQ(whole("hi", FinishReason::kAborted)["stop_reason"], "abort");
  request_.sampling.stop_strings = {"!!"};
  const json stopped = whole("hi!!", FinishReason::kStop);
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "!!");
  EXPECT_EQ(stopped["content"][0]["text"], "hi");
  request_.sampling.stop_strings.clear();
  request_.sampling.stop_tokens = {'?'};
  const json by_token = whole("hi?", FinishReason::kStop);
  EXPECT_EQ(by_token["stop_reason"], "end_turn");
  EXPECT_EQ(by_token["stop_sequence"], nullptr);
}

TEST_F(MessagesAnswers, CallsAreBlocksWithParsedInputsInTheirPlaces) {
  request_.tools = true;
  const json message = whole(kCalls, FinishReason::kEos);
  EXPECT_EQ(message["stop_reason"], "tool_use");
  const json& content = message["content"];
  ASSERT_EQ(content.size(), 4u) << content;
  EXPECT_EQ(content[0], (json{{"type", "text"}, {"text", "So:\n"}}));
  EXPECT_EQ(content[1]["type"], "tool_use");
  EXPECT_EQ(content[1]["name"], "add");
  EXPECT_EQ(content[1]["input"], (json{{"a", 2}, {"b", 1}}));
  EXPECT_TRUE(content[1]["id"].get<std::string>().starts_with("toolu_"));
  EXPECT_EQ(content[2], (json{{"type", "text"}, {"text", "then"}}));
  EXPECT_EQ(content[3]["input"], json::object());
  EXPECT_NE(content[1]["id"], content[3]["id"]);

  EXPECT_EQ(whole(std::string(kCalls).substr(0, 35), FinishReason::kLength)["content"],
            json::parse(R"([{"type":"text","text":"So:\n<tool_call>{\"name\":\"add\",\"argum"}])"))
      << "what is no whole call stays text";
  request_.one_call = true;
  EXPECT_EQ(whole(kCalls, FinishReason::kEos)["content"].size(), 3u);
}

TEST_F(MessagesAnswers, BlankTextMakesABlockOnlyAlone) {
  request_.tools = true;
  const std::string_view calls = kCalls;
  const std::string call(calls.substr(4, calls.find("</tool_call>") + 12 - 4));
  const json message = whole("\n \n" + call + "\n", FinishReason::kEos);
  ASSERT_EQ(message["content"].size(), 1u) << message;
  EXPECT_EQ(message["content"][0]["type"], "tool_use");
  EXPECT_EQ(whole("\n" + call + "then", FinishReason::kEos)["content"][1]["text"], "then")
      << "it is no part of a later text either";
  EXPECT_EQ(whole(" \n", FinishReason::kEos)["content"],
            json::parse(R"([{"type":"text","text":" \n"}])"));
  EXPECT_EQ(whole("", FinishReason::kEos)["content"], json::array());
}

TEST_F(MessagesAnswers, EventsAddUpToTheWhole) {
  request_.logprobs = request_.return_token_ids = true;
  for (const bool tools : {false, true}) {
    request_.tools = tools;
    for (const char* text : {kCalls, "hi", " \n", "", "\n\n a b ", "<tool_call>{\"name\":"}) {
      for (const FinishReason finish : {FinishReason::kEos, FinishReason::kLength}) {
        const std::vector<json> events = streamed(text, finish);
        EXPECT_EQ(together(events), whole(text, finish)) << text;
        EXPECT_EQ(events.front()["message"]["usage"],
                  (json{{"input_tokens", 2}, {"output_tokens", 0}}));
        EXPECT_EQ(events.back(), (json{{"type", "message_stop"}}));
      }
    }
  }
}

TEST_F(MessagesAnswers, IdsAndLogprobsBesideTheBlocks) {
  request_.return_token_ids = request_.logprobs = true;
  const json message = whole("hi", FinishReason::kEos);
  EXPECT_EQ(message["prompt_token_ids"], json({'a', 'b'}));
  EXPECT_EQ(message["token_ids"], json({'h', 'i', kEnd}));
  EXPECT_EQ(message["system_fingerprint"], "v12");
  ASSERT_EQ(message["logprobs"]["content"].size(), 3u);
  EXPECT_EQ(message["logprobs"]["content"][1]["logprob"], -1.0);
  EXPECT_EQ(message["logprobs"]["content"][1]["token"], "i");
}

TEST_F(MessagesAnswers, AnErrorEndsAStream) {
  const auto made = answer(request_, prompts_);
  EXPECT_EQ(made->error_event({.status = 500, .message = "a \"b\""}),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\","
            "\"message\":\"a \\\"b\\\"\"}}\n\n");
}

TEST(MessagesErrors, HaveAnthropicsTypes) {
  struct Typed {
    int status;
    const char* type;
  };
  for (const Typed& one : {Typed{400, "invalid_request_error"},
                           {401, "authentication_error"},
                           {403, "permission_error"},
                           {404, "not_found_error"},
                           {405, "invalid_request_error"},
                           {413, "request_too_large"},
                           {429, "rate_limit_error"},
                           {500, "api_error"},
                           {501, "api_error"},
                           {503, "overloaded_error"},
                           {504, "timeout_error"}}) {
    const net::HttpResponse made =
        api_error_response({.status = one.status, .message = "m"}, ErrorForm::kAnthropic);
    EXPECT_EQ(made.status, one.status);
    EXPECT_EQ(json::parse(made.body),
              (json{{"type", "error"}, {"error", {{"type", one.type}, {"message", "m"}}}}));
  }
}

TEST(MessagesErrors, AreThoseOfTheirPaths) {
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches",
                           "/sessions/x/v1/messages"})
    EXPECT_EQ(error_form_of(path), ErrorForm::kAnthropic) << path;
  for (const char* path : {"", "/", "/v1/messagesx", "/v1/chat/completions", "/messages"})
    EXPECT_EQ(error_form_of(path), ErrorForm::kOpenAi) << path;
}

}  // namespace
}  // namespace troupe::dialects
