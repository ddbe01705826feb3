// ChatTemplate: where the source is found, what a template sees, and which error says what.
// That the text equals transformers' is checked by tests/oracle/text_template_test.py.
#include "runtime/text/chat_template.hpp"

#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace troupe::text {
namespace {

using core::ErrorCode;

const std::vector<ChatMessage> kHello = {{"user", "hello"}};

ChatTemplate parsed(std::string_view source, SpecialTokens special = {}) {
  auto chat = ChatTemplate::parse(source, std::move(special), "test");
  EXPECT_TRUE(chat) << chat.error().message;
  return *chat;
}

std::string rendered(std::string_view source, const RenderOptions& options = {}) {
  const auto text = parsed(source).render(kHello, options);
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : "";
}

core::Error error_of(std::string_view source, const RenderOptions& options = {}) {
  const auto text = parsed(source).render(kHello, options);
  EXPECT_FALSE(text) << *text;
  return text ? core::Error{} : text.error();
}

// What Python's json and str print for the numbers that its json reads.
TEST(ChatTemplate, NumbersAreThoseOfPython) {
  const auto printed = [](const std::string& number) {
    RenderOptions options;
    options.tools_json = "[\"a 7\\\" 8\"," + number + "]";
    return rendered("{{ tools[1] }} {{ tools[1:] | tojson }}", options);
  };
  for (const auto& [number, python] : std::vector<std::pair<std::string, std::string>>{
           {"123456789012345678901234567890", "123456789012345678901234567890"},
           {"-9223372036854775809", "-9223372036854775809"},
           {"340282366920938463463374607431768211456123",
            "340282366920938463463374607431768211456123"},
           {"18446744073709551615", "18446744073709551615"},
           {"-0", "0"},
           {"-0.0", "-0.0"},
           {"1e5", "100000.0"},
           {"1e22", "1e+22"},
           {"0.10", "0.1"},
           {"1.0", "1.0"},
           {"123456789012345678901234567890.0", "1.2345678901234568e+29"}}) {
    EXPECT_EQ(printed(number), python + " [" + python + "]") << number;
  }
}

TEST(ChatTemplate, AnIntegerBeyond128BitsIsComparedAndHasItsKind) {
  RenderOptions options;
  options.variables_json =
      R"({"big": 1)" + std::string(60, '0') + R"(, "less": -1)" + std::string(60, '0') + "}";
  EXPECT_EQ(rendered("{{ big > 5 }} {{ less < 5 }} {{ big == big }} {{ big > less }} "
                     "{{ big is integer }} {{ big is number }} {% if big %}yes{% endif %} "
                     "{{ big < 1e70 }} {{ 5 > big }}",
                     options),
            "True True True True True True yes True False");
  EXPECT_NE(error_of("{{ big + 1 }}", options).message.find("unsupported operand"),
            std::string::npos);
}

TEST(ChatTemplate, FileGoesBeforeTheConfig) {
  TempFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "config", "eos_token": "</s>"})");
  EXPECT_EQ(*ChatTemplate::load(folder.path())->render(kHello), "config");
  folder.write("chat_template.jinja", "file{{ eos_token }}\n");
  EXPECT_EQ(*ChatTemplate::load(folder.path())->render(kHello), "file</s>");
}

TEST(ChatTemplate, ListOfNamedTemplatesGivesTheDefault) {
  TempFolder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "rag", "template": "r"},
                                     {"name": "default", "template": "d"}]})");
  EXPECT_EQ(*ChatTemplate::load(folder.path())->render(kHello), "d");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag"}]})");
  const auto none = ChatTemplate::load(folder.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kData);
}

TEST(ChatTemplate, FolderWithoutOneSaysWhatToDo) {
  TempFolder folder;
  const auto none = ChatTemplate::load(folder.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_NE(none.error().message.find("chat_template.jinja"), std::string::npos);
}

TEST(ChatTemplate, SeesMessagesInOrderAndWithTheirKeysInOrder) {
  EXPECT_EQ(rendered("{{ messages }}"), "[{'role': 'user', 'content': 'hello'}]");
  const auto text = parsed("{{ messages|tojson }}")
                        .render_json(R"([{"z":1,"role":"user","a":null,"content":"x"}])");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, R"([{"z": 1, "role": "user", "content": "x"}])");
}

TEST(ChatTemplate, VariablesGoBeforeSpecialTokens) {
  SpecialTokens special;
  special.bos = "<s>";
  const auto chat = parsed("{{ bos_token }}{{ eos_token is defined }}{{ x.b if x }}", special);
  EXPECT_EQ(*chat.render(kHello), "<s>False");
  RenderOptions options;
  options.variables_json = R"({"bos_token": "B", "x": {"b": 2}})";
  EXPECT_EQ(*chat.render(kHello, options), "BFalse2");
}

TEST(ChatTemplate, OptionsReachTheTemplate) {
  RenderOptions options;
  options.add_generation_prompt = false;
  options.tools_json = R"([{"name": "f"}])";
  const auto source = "{{ add_generation_prompt }} {{ tools[0].name }} {{ documents }}";
  EXPECT_EQ(rendered(source, options), "False f None");
  EXPECT_EQ(rendered("{{ add_generation_prompt }} {{ tools }}"), "True None");
}

TEST(ChatTemplate, RequestCannotReplaceWhatTheCallerSets) {
  RenderOptions options;
  options.variables_json = R"({"messages": []})";
  const auto error = error_of("x", options);
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(error.message.find("'messages'"), std::string::npos) << error.message;
}

TEST(ChatTemplate, RaisedMessageReachesTheUser) {
  const auto error = error_of("{{ raise_exception('roles must alternate') }}");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_NE(error.message.find("refuses these messages: roles must alternate"), std::string::npos)
      << error.message;
}

TEST(ChatTemplate, FailureNamesTheLine) {
  const auto error = error_of("a\nb\n{{ nothing.at.all }}");
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_NE(error.message.find("line 3: 'nothing' is undefined"), std::string::npos)
      << error.message;
}

TEST(ChatTemplate, SyntaxErrorNamesTheLine) {
  for (const char* source : {"a\n{% if %}", "a\n{{ 1 +", "a\n{% endfor %}", "a\n{% nope %}",
                             "a\n{% include 'x' %}", "a\n{{ 'open }}", "a\n{% for x in y %}"}) {
    const auto chat = ChatTemplate::parse(source, {}, "test");
    ASSERT_FALSE(chat) << source;
    EXPECT_EQ(chat.error().code, ErrorCode::kData);
    EXPECT_NE(chat.error().message.find("line 2"), std::string::npos) << chat.error().message;
  }
  EXPECT_FALSE(ChatTemplate::parse("\xFF", {}, "test"));
}

TEST(ChatTemplate, MalformedMessagesAreTheCallersFault) {
  const auto chat = parsed("x");
  for (const char* messages : {"", "{", "[]", "{}", "[1]", "null", "[{}", "[{\"a\": \xFF}]"}) {
    const auto text = chat.render_json(messages);
    ASSERT_FALSE(text) << messages;
    EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument) << text.error().message;
  }
  RenderOptions options;
  for (const char* tools : {"{}", "3", "["}) {
    options.tools_json = tools;
    EXPECT_FALSE(chat.render(kHello, options)) << tools;
  }
}

TEST(ChatTemplate, ContentThatIsNoUtf8IsReplaced) {
  const auto text = parsed("{{ messages[0].content }}").render({{{"user", "a\xFFz"}}});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "a\uFFFDz");
}

TEST(ChatTemplate, ContentIsDataNotTemplate) {
  const auto text = parsed("{{ messages[0].content }}").render({{{"user", "{{ 1 }}{% if %}"}}});
  EXPECT_EQ(*text, "{{ 1 }}{% if %}");
}

TEST(ChatTemplate, ManyThreadsShareOne) {
  const auto chat = parsed("{% for m in messages %}{{ m.content|upper }}{% endfor %}");
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (auto& text : texts) {
    threads.emplace_back([&text, chat] {
      for (int i = 0; i < 50; ++i)
        text = *chat.render(kHello);
    });
  }
  for (auto& thread : threads)
    thread.join();
  for (const auto& text : texts)
    EXPECT_EQ(text, "HELLO");
}

TEST(ChatTemplate, RealSmallModelsTemplateAddsItsSystemMessage) {
  const auto folder = real_model_folder();
  if (folder.empty()) {
    GTEST_SKIP() << "LOUD SKIP: no SmolLM2-135M-Instruct under TROUPE_HOME; run ./dev demo once";
  }
  const auto chat = ChatTemplate::load(folder);
  ASSERT_TRUE(chat) << chat.error().message;
  const auto text = *chat->render(kHello);
  EXPECT_EQ(text.find("<|im_start|>system\n"), 0u);
  EXPECT_NE(text.find("<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe::text
