// Malformed requests over all dialects: each is answered with an error in the form of its path that
// names the field at fault.
#include "runtime/dialects/readers.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace troupe::dialects {
namespace {

using nlohmann::json;

constexpr const char* kComplete = "/v1/completions";
constexpr const char* kChats = "/v1/chat/completions";
constexpr const char* kGenerate = "/inference/v1/generate";
constexpr const char* kMessage = "/v1/messages";
constexpr const char* kCount = "/v1/messages/count_tokens";
constexpr const char* kTokenize = "/tokenize";

// The error with which the reader of a path answers, if it does.
template <class Outcome>
std::optional<ApiError> error_in(Outcome outcome) {
  if (auto* error = std::get_if<ApiError>(&outcome)) return std::move(*error);
  return std::nullopt;
}
std::optional<ApiError> read(const std::string& path, const std::string& body) {
  if (path == kComplete) return error_in(read_completion(body, {}));
  if (path == kChats) return error_in(read_chat(body, {}));
  if (path == kGenerate) return error_in(read_token_generate(body, {}));
  if (path == kMessage) return error_in(read_messages_request(body, {}));
  if (path == kCount) return error_in(read_count_tokens(body, {}));
  return error_in(read_tokenize(body, {}));
}

// Checks the whole answer: status 400, the form of the path, the field, and what is said of it.
void expect_malformed(const std::string& path,
                      const std::string& body,
                      const std::string& field,
                      const std::string& says) {
  const std::string shown = path + " " + body.substr(0, 200);
  const std::optional<ApiError> error = read(path, body);
  ASSERT_TRUE(error) << shown;
  const net::HttpResponse response = api_error_response(*error, error_form_of(path));
  EXPECT_EQ(response.status, 400) << shown;
  const json answer = json::parse(response.body);
  const json& told = answer["error"];
  const std::string message = told["message"];
  EXPECT_EQ(told["type"], "invalid_request_error") << shown;
  EXPECT_NE(message.find(says), std::string::npos) << shown << ": " << message;
  if (!field.empty()) {
    EXPECT_NE(message.find("'" + field + "'"), std::string::npos) << shown << ": " << message;
  }
  EXPECT_LT(message.size(), 400u) << "what a client sent is not sent back at length";
  if (path == kMessage || path == kCount) {
    EXPECT_EQ(answer["type"], "error");
    EXPECT_EQ(told.size(), 2u) << response.body;
  } else {
    EXPECT_EQ(answer.size(), 1u);
    EXPECT_EQ(told["param"], field.empty() ? json() : json(field)) << shown;
    EXPECT_TRUE(told.contains("code"));
  }
}

struct Malformed {
  const char* path;
  const char* body;
  const char* field;
  const char* says;
};

const Malformed kTable[] = {
    // Completions.
    {kComplete, "", "", "not valid JSON"},
    {kComplete, R"("prompt")", "", "no JSON object"},
    {kComplete, R"({"prompt":"a"} {})", "", "not valid JSON"},
    {kComplete, R"({"prompt":"a","prompt":)", "", "not valid JSON"},
    {kComplete, R"({"model":7,"prompt":"a"})", "model", "must be a string"},
    {kComplete, R"({"prompt":{}})", "prompt", "must be a string"},
    {kComplete, R"({"prompt":[[]  ,1]})", "prompt", "must be a string"},
    {kComplete, R"({"prompt":[1e99]})", "prompt", "not a token id"},
    {kComplete, R"({"prompt":[2147483648]})", "prompt", "not a token id"},
    {kComplete, R"({"prompt":"a","temperature":1e400})", "", "not valid JSON"},
    {kComplete, R"({"prompt":"a","temperature":1e39})", "temperature", "between 0 and 1000"},
    {kComplete, R"({"prompt":"a","top_p":1.01})", "top_p", "between"},
    {kComplete, R"({"prompt":"a","max_tokens":99999999999999999999})", "max_tokens",
     "must be between"},
    {kComplete, R"({"prompt":"a","max_tokens":3000000000})", "max_tokens", "between"},
    {kComplete, R"({"prompt":"a","n":257})", "n", "between 1 and 256"},
    {kComplete, R"({"prompt":"a","seed":1.5})", "seed", "whole number"},
    {kComplete, R"({"prompt":"a","stop":{"a":1}})", "stop", "list of strings"},
    {kComplete, R"({"prompt":"a","logit_bias":{"1":null}})", "logit_bias", "numbers"},
    {kComplete, R"({"prompt":"a","priority":-9999999999})", "priority", "between"},
    {kComplete, R"({"prompt":"a","messages":[]})", "messages", "not a field"},
    // Chats.
    {kChats, R"({"messages":{}})", "messages", "at least one message"},
    {kChats, R"({"messages":[[]]})", "messages[0]", "with a role"},
    {kChats, R"({"messages":[{"role":7}]})", "messages[0]", "with a role"},
    {kChats, R"({"messages":[{"role":"user","content":{"a":1}}]})", "messages[0].content",
     "string"},
    {kChats, R"({"messages":[{"role":"user","content":[7]}]})", "messages[0].content", "type text"},
    {kChats, R"({"messages":[{"role":"user","content":[{"type":7,"text":"a"}]}]})",
     "messages[0].content", "type text"},
    {kChats, R"({"messages":[{"role":"assistant","content":"a","tool_calls":{}}]})",
     "messages[0].tool_calls", "a list"},
    {kChats,
     R"({"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]}]})",
     "messages[0].tool_calls[0].function.arguments", "JSON object"},
    {kChats, R"({"messages":[{"role":"user","content":"a"}],"tools":[[]]})", "tools[0]", "object"},
    {kChats, R"({"messages":[{"role":"user","content":"a"}],"tool_choice":7})", "tool_choice",
     "must be"},
    {kChats, R"({"messages":[{"role":"user","content":"a"}],"parallel_tool_calls":"no"})",
     "parallel_tool_calls", "true or false"},
    {kChats, R"({"messages":[{"role":"user","content":"a"}],"logprobs":5})", "logprobs",
     "true or false"},
    {kChats, R"({"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":[]})",
     "chat_template_kwargs", "an object"},
    {kChats, R"({"messages":[{"role":"user","content":"a"}],"stream":true,"stream_options":7})",
     "stream_options", "an object"},
    {kChats, R"({"messages":[{"role":"user","content":"a"}],"mesages":1})", "mesages",
     "did you mean 'messages'"},
    // Token ids.
    {kGenerate, "[]", "", "no JSON object"},
    {kGenerate, R"({"token_ids":null})", "token_ids", "list of token ids"},
    {kGenerate, R"({"token_ids":[[1]]})", "token_ids", "not a token id"},
    {kGenerate, R"({"token_ids":[true]})", "token_ids", "not a token id"},
    {kGenerate, R"({"token_ids":[1],"sampling_params":7})", "sampling_params", "an object"},
    {kGenerate, R"({"token_ids":[1],"sampling_params":{"temperature":"x"}})",
     "sampling_params.temperature", "a number"},
    {kGenerate, R"({"token_ids":[1],"sampling_params":{"stop_token_ids":[-1]}})",
     "sampling_params.stop_token_ids", "not a token id"},
    {kGenerate, R"({"token_ids":[1],"sampling_params":{"n":0}})", "sampling_params.n", "between"},
    {kGenerate, R"({"token_ids":[1],"request_id":7})", "request_id", "a string"},
    {kGenerate, R"({"token_ids":[1],"return_routed_experts":1})", "return_routed_experts", "true"},
    {kGenerate, R"({"token_ids":[1],"stream":1})", "stream", "true or false"},
    // Anthropic's messages.
    {kMessage, "{", "", "not valid JSON"},
    {kMessage, "[]", "", "no JSON object"},
    {kMessage, "{}", "max_tokens", "is missing"},
    {kMessage, R"({"max_tokens":"5"})", "max_tokens", "whole number"},
    {kMessage, R"({"max_tokens":0})", "max_tokens", "between"},
    {kMessage, R"({"max_tokens":5})", "messages", "is missing"},
    {kMessage, R"({"max_tokens":5,"messages":[]})", "messages", "at least one message"},
    {kMessage, R"({"max_tokens":5,"messages":[7]})", "messages[0]", "with a role"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"tool","content":"a"}]})", "messages[0].role",
     "user, assistant"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user"}]})", "messages[0].content",
     "is missing"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":[]}]})",
     "messages[0].content", "at least one block"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image"}]}]})",
     "messages[0].content[0]", "text or tool_result"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"text"}]}]})",
     "messages[0].content[0]", "text or tool_result"},
    {kMessage,
     R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result"}]}]})",
     "messages[0].content[0].tool_use_id", "a text"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":[
         {"type":"tool_result","tool_use_id":"a","content":[{"type":"image"}]}]}]})",
     "messages[0].content[0].content[0]", "type text"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":[
         {"type":"tool_use","id":"a","name":"f","input":{}}]}]})",
     "messages[0].content[0]", "text or tool_result"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"assistant","content":[
         {"type":"tool_use","id":"a","name":"f","input":"{}"}]}]})",
     "messages[0].content[0].input", "an object"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"assistant","content":[
         {"type":"tool_use","id":"a","name":"","input":{}}]}]})",
     "messages[0].content[0].name", "not empty"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"assistant","content":[
         {"type":"thinking","thinking":"a"}]}]})",
     "messages[0].content[0]", "text or tool_use"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"},
         {"role":"assistant","content":"b"}]})",
     "messages[1].role", "goes on with no answer"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"system":7})",
     "system", "a text or a list"},
    {kMessage,
     R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"system":[{"type":"image"}]})",
     "system[0]", "type text"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"tools":{}})", "tools",
     "a list"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"tools":[7]})",
     "tools[0]", "an object"},
    {kMessage,
     R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f"}]})",
     "tools[0].input_schema", "an object"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],
         "tools":[{"input_schema":{}}]})",
     "tools[0].name", "not empty"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],
         "tools":[{"name":"f","input_schema":{}},{"name":"f","input_schema":{}}]})",
     "tools", "two tools"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],
         "tools":[{"type":"web_search_20250305","name":"web_search"}]})",
     "tools[0].type", "runs no tools"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],
         "tools":[{"name":"f","input_schema":{},"parameters":{}}]})",
     "tools[0].parameters", "not a field"},
    {kMessage,
     R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"tool_choice":"auto"})",
     "tool_choice", "an object"},
    {kMessage,
     R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"x"}})",
     "tool_choice.type", "auto, none, any or tool"},
    {kMessage,
     R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"tool"}})",
     "tool_choice.name", "is missing"},
    {kMessage,
     R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"stop_sequences":[7]})",
     "stop_sequences", "strings"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"stop":"a"})", "stop",
     "not a field"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"temperature":-1})",
     "temperature", "between"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"thinking":true})",
     "thinking", "disabled"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],
         "mcp_servers":[{"url":"http://a"}]})",
     "mcp_servers", "not supported"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":"a"}],"n":2})", "n",
     "one sample"},
    {kCount, "{}", "messages", "is missing"},
    {kCount, R"({"messages":[{"role":"user","content":7}]})", "messages[0].content", "a text"},
    {kCount, R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5})", "max_tokens",
     "not a field"},
    // Tokenize.
    {kTokenize, "{}", "prompt", "is missing"},
    {kTokenize, R"({"prompt":7})", "prompt", "a string"},
    {kTokenize, R"({"messages":7})", "messages", "a list"},
    {kTokenize, R"({"messages":[{"role":"user","content":"a"}],"tools":7})", "tools", "a list"},
    {kTokenize, R"({"prompt":"a","tools":[]})", "tools", "not a field"},
    {kTokenize, R"({"prompt":"a","return_token_strs":"no"})", "return_token_strs", "true or false"},
};

TEST(Malformed, EachIsAnsweredInItsOwnFormByItsField) {
  static_assert(std::size(kTable) >= 60);
  for (const Malformed& one : kTable)
    expect_malformed(one.path, one.body, one.field, one.says);
}

// A body of each path around a JSON value of a dialogue or a prompt.
struct Around {
  const char* path;
  const char* before;
  const char* after;
};
constexpr Around kAround[] = {
    {kComplete, R"({"prompt":)", "}"},
    {kChats, R"({"messages":[{"role":"user","content":)", "}]}"},
    {kGenerate, R"({"token_ids":[1],"cache_salt":)", "}"},
    {kMessage, R"({"max_tokens":5,"messages":[{"role":"user","content":)", "}]}"},
    {kCount, R"({"messages":[{"role":"user","content":)", "}]}"},
    {kTokenize, R"({"prompt":)", "}"},
};

TEST(Malformed, TextThatIsNoUtf8) {
  for (const Around& one : kAround) {
    EXPECT_FALSE(read(one.path, one.before + std::string("\"h\xc3\xa4\"") + one.after)) << one.path;
    for (const char* bytes : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
      expect_malformed(one.path, std::string(one.before) + "\"" + bytes + "\"" + one.after, "",
                       "not valid JSON");
    }
    for (const char* escaped : {"\"\\ud800\"", "\"\\udc00\"", "\"\\u12\""})
      expect_malformed(one.path, std::string(one.before) + escaped + one.after, "",
                       "not valid JSON");
  }
}

TEST(Malformed, ValuesThatLieDeep) {
  for (const Around& one : kAround) {
    for (const std::size_t depth : {65u, 1000u, 1'000'000u}) {
      const std::string deep = std::string(depth, '[') + std::string(depth, ']');
      expect_malformed(one.path, one.before + deep + one.after, "", "nested deeper than 64");
      expect_malformed(one.path, one.before + std::string(depth, '['), "", "nested deeper than 64");
    }
  }
}

std::string dialogue(std::size_t count) {
  std::string out = "[";
  for (std::size_t i = 0; i < count; ++i)
    out += std::string(i == 0 ? "" : ",") + R"({"role":"user","content":"a"})";
  return out + "]";
}

// 10,000 are read (whether the context holds them, the tokenizer says); more values than 65,536
// are not.
TEST(Malformed, ManyMessages) {
  for (const char* path : {kChats, kMessage, kCount, kTokenize}) {
    const std::string more = path == std::string(kMessage) ? R"("max_tokens":5,)" : "";
    EXPECT_FALSE(read(path, "{" + more + "\"messages\":" + dialogue(10'000) + "}")) << path;
    expect_malformed(path, "{" + more + "\"messages\":" + dialogue(30'000) + "}", "messages",
                     "more than 65536 values");
  }
}

}  // namespace
}  // namespace troupe::dialects
