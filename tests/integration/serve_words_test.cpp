// What `troupe serve` gives the template and the client, to the byte: numbers of tools and
// arguments, system texts, calls without arguments, and the tokens' own bytes.
#include "serve_support.hpp"
#include "tests/unit/runtime/parse/number_spellings.hpp"

namespace troupe::test {
namespace {

using nlohmann::json;

// Prints tools and calls as JSON, and takes a system message in the first place alone.
constexpr const char* kStrict =
    "{%- if tools %}{{ tools | tojson }}{% endif %}{%- for m in messages %}"
    "{%- if m.role == 'system' and not loop.first %}{{ raise_exception('system comes first') }}"
    "{% endif %}<{{ m.role }}>{{ m.content or '' }}"
    "{%- for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}"
    "{% endfor %}{% endfor %}";

std::string make_strict_model(const ScratchFolder& folder) {
  const std::string path = make_long_tiny_model(folder);
  std::ofstream(std::filesystem::path(path) / "chat_template.jinja") << kStrict;
  return path;
}

// A suite has one server.
class ServeWords : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { served_ = new Served({}, &make_strict_model); }
  static void TearDownTestSuite() {
    delete served_;
    served_ = nullptr;
  }
  // The text that the template makes of a dialogue: a token is a byte.
  static std::string prompt_of(const std::string& body) {
    const HttpAnswer answer = served_->call("POST", "/tokenize", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    std::string text;
    const json read = answer.json();
    if (answer.status != 200) return text;
    for (const auto& token : read["tokens"])
      text += static_cast<char>(token.get<int>());
    return text;
  }
  static json refused(const std::string& path, const std::string& body) {
    const HttpAnswer answer = served_->call("POST", path, body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.json();
  }

  static Served* served_;
};
Served* ServeWords::served_ = nullptr;

}  // namespace

// As Python prints what its json reads (tests/oracle/text_template_test.py compares them all).
TEST_F(ServeWords, NumbersReachTheTemplateAsPythonReadsThem) {
  const auto body = [](const std::string& number) {
    return R"({"add_generation_prompt":false,"messages":[{"role":"user","content":"a"},
        {"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f",
        "arguments":"{\"n\": )" +
           number + R"(}"}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":
        {"maximum":)" +
           number + "}}}]}";
  };
  const auto expected = [](const std::string& python) {
    return R"([{"type": "function", "function": {"name": "f", "parameters": {"maximum": )" +
           python + R"(}}}]<user>a<assistant>f{"n": )" + python + "}";
  };
  for (const auto& [number, python] : std::vector<std::pair<std::string, std::string>>{
           {"123456789012345678901234567890", "123456789012345678901234567890"},
           {"-9223372036854775809", "-9223372036854775809"},
           {"18446744073709551616", "18446744073709551616"},
           {"9007199254740993", "9007199254740993"},
           {"0.10", "0.1"},
           {"1e5", "100000.0"},
           {"-0", "0"},
           {"-0.0", "-0.0"}}) {
    EXPECT_EQ(prompt_of(body(number)), expected(python)) << number;
  }
  for (const std::string number : kNumberSpellings)
    EXPECT_NE(prompt_of(body(number)), "") << number;
}

TEST_F(ServeWords, SystemTextsLeadWhereverTheyAreSaid) {
  const std::string asked = R"("model":"tiny","system":"A","messages":[
      {"role":"user","content":"task"},{"role":"system","content":"x"}]})";
  const HttpAnswer answered = served_->call("POST", "/v1/messages", R"({"max_tokens":4,)" + asked);
  EXPECT_EQ(answered.status, 200) << answered.body;
  const HttpAnswer counted = served_->call("POST", "/v1/messages/count_tokens", "{" + asked);
  ASSERT_EQ(counted.status, 200) << counted.body;
  EXPECT_EQ(counted.json()["input_tokens"], std::string("<system>A\n\nx<user>task").size());
}

TEST_F(ServeWords, EmptyArgumentsAreACallWithoutArguments) {
  for (const char* arguments : {R"("")", "null", R"("{}")", "{}"}) {
    const std::string body =
        R"({"add_generation_prompt":false,"messages":[{"role":"user","content":"a"},
        {"role":"assistant","content":"","tool_calls":[{"type":"function","function":
        {"name":"now","arguments":)" +
        std::string(arguments) + R"(}}]}]})";
    EXPECT_EQ(prompt_of(body), "<user>a<assistant>now{}") << arguments;
  }
}

TEST_F(ServeWords, BytesOfTokensAreTheirOwnAndNoNameIsSharedAmongThem) {
  const std::string text = "x\xF0\x9F\x98\x8A\xC3\xA9";
  const json answer =
      served_
          ->post("/v1/completions",
                 {{"prompt", text}, {"echo", true}, {"max_tokens", 0}, {"logprobs", 5}})
          .json();
  const json& logprobs = answer["choices"][0]["logprobs"];
  ASSERT_EQ(logprobs["tokens"].size(), text.size()) << answer.dump();
  EXPECT_EQ(logprobs["tokens"][0], "x");
  EXPECT_EQ(logprobs["tokens"][1], "bytes:\\xf0");
  EXPECT_EQ(logprobs["text_offset"], json({0, 1, 2, 2, 2, 2, 3}));
  for (std::size_t i = 1; i < text.size(); ++i) {
    const json& top = logprobs["top_logprobs"][i];
    const std::string own = logprobs["tokens"][i];
    EXPECT_TRUE(top.contains(own)) << top.dump();
    EXPECT_TRUE(top.size() == 5 || top.size() == 6) << top.dump();
  }
  const json chat =
      served_
          ->post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "a"}}}},
                                          {"max_tokens", 40},
                                          {"seed", 3},
                                          {"ignore_eos", true},
                                          {"logprobs", true},
                                          {"return_token_ids", true},
                                          {"top_logprobs", 20}})
          .json();
  const json& choice = chat["choices"][0];
  ASSERT_EQ(choice["logprobs"]["content"].size(), 40u) << chat.dump();
  for (std::size_t i = 0; i < 40; ++i) {
    const json& one = choice["logprobs"]["content"][i];
    const int token = choice["token_ids"][i];
    if (token < 256) {
      EXPECT_EQ(one["bytes"], json({token})) << one.dump();
    }
    std::set<std::string> names;
    for (const json& other : one["top_logprobs"])
      EXPECT_TRUE(names.insert(other["token"].get<std::string>()).second) << one.dump();
  }
}

TEST_F(ServeWords, AMinimumOfOpenNamesIsRefusedByName) {
  const std::string schema =
      R"({"type":"object","minProperties":2,"additionalProperties":{"const":1}})";
  const json error = refused("/v1/completions", R"({"prompt":"a","guided_json":)" + schema + "}");
  EXPECT_NE(error.dump().find("minProperties"), std::string::npos) << error.dump();
  const json forced =
      refused("/v1/chat/completions",
              R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"required","tools":[
      {"type":"function","function":{"name":"f","parameters":)" +
                  schema + "}}]}");
  EXPECT_NE(forced.dump().find("minProperties"), std::string::npos) << forced.dump();
}

}  // namespace troupe::test
