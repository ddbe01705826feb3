// What messages, tools and template variables may hold, and the forms in which templates read them.
#include "runtime/text/messages.hpp"

#include "runtime/text/message_forms.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::text {
namespace {

using Json = nlohmann::ordered_json;

std::string fault_of(const char* message) {
  const auto fault = check_message(Json::parse(message));
  return fault ? fault->field + "|" + fault->why : "";
}

TEST(Messages, EachPartIsCheckedAndNamed) {
  EXPECT_EQ(fault_of(R"({"role": "user", "content": "a"})"), "");
  EXPECT_EQ(fault_of(R"({"role": "critic", "content": [{"type": "text", "text": "a"}]})"), "");
  EXPECT_EQ(fault_of(R"({"role": "assistant", "content": null, "tool_calls": [
                {"function": {"name": "f", "arguments": "{\"a\": 1}"}}, {"name": "g"}]})"),
            "");
  EXPECT_EQ(fault_of(R"({"role": "assistant", "reasoning_content": "hm"})"), "");
  EXPECT_EQ(fault_of("[]"), "|must be an object with a role");
  EXPECT_EQ(fault_of(R"({"content": "a"})"), "|must be an object with a role");
  EXPECT_EQ(fault_of(R"({"role": "user"})"), ".content|is missing");
  EXPECT_EQ(fault_of(R"({"role": "assistant", "tool_calls": []})"), ".content|is missing");
  EXPECT_EQ(fault_of(R"({"role": "user", "content": 3})"),
            ".content|must be a string or a list of at least one part");
  EXPECT_EQ(fault_of(R"({"role": "user", "content": [{"type": "image"}]})"),
            ".content|may hold parts of type text alone");
  EXPECT_EQ(fault_of(R"({"role": "assistant", "content": "", "tool_calls": {}})"),
            ".tool_calls|must be a list");
  EXPECT_EQ(fault_of(R"({"role": "assistant", "content": "", "tool_calls": [{"function": {}}]})"),
            ".tool_calls[0]|must be an object with a function that has a name");
  EXPECT_EQ(fault_of(R"({"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "f", "arguments": "[1]"}}]})"),
            ".tool_calls[0].function.arguments|must be the text of a JSON object");
}

TEST(Messages, ArgumentsAreAnObjectItsTextOrNothing) {
  for (const Json& none : {Json(), Json(""), Json(" \n"), Json("{}"), Json::object()})
    EXPECT_EQ(*arguments_of(none), Json::object()) << none;
  EXPECT_EQ(*arguments_of(Json(R"({"b": 1, "a": [2]})")), Json::parse(R"({"b": 1, "a": [2]})"));
  for (const Json& bad : {Json("3"), Json("{"), Json(3), Json::array()})
    EXPECT_FALSE(arguments_of(bad)) << bad;
}

TEST(Messages, AMessageKeepsAllItsNamesAndItsWeight) {
  const auto plain = message_of(Json::parse(R"({"role": "user", "content": "a"})"));
  ASSERT_TRUE(plain);
  EXPECT_EQ(*plain, (ChatMessage{"user", "a"}));
  const Json whole = Json::parse(R"({"name": "ann", "role": "user", "weight": 0, "content": [
      {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})");
  const auto kept = message_of(whole);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->content, "ab");
  EXPECT_EQ(Json::parse(kept->json), whole);
  EXPECT_EQ(kept->weight, false);
  EXPECT_EQ(to_json(std::vector{*plain, *kept}),
            R"([{"role":"user","content":"a"},)" + whole.dump() + "]");
  const auto half = message_of(Json::parse(R"({"role": "user", "content": "", "weight": 0.5})"));
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().message, ".weight must be 0 (not learned) or 1");
}

TEST(Messages, SilentIsAMessageWithoutTextCallAndReasoning) {
  EXPECT_TRUE(says_nothing({"assistant", ""}));
  EXPECT_TRUE(says_nothing({"assistant", "", R"({"role": "assistant", "tool_calls": []})"}));
  EXPECT_FALSE(says_nothing({"assistant", "a"}));
  EXPECT_FALSE(says_nothing({"assistant", "", R"({"tool_calls": [{"name": "f"}]})"}));
  EXPECT_FALSE(says_nothing({"assistant", "", R"({"reasoning": "hm"})"}));
}

TEST(Messages, ToolsAndVariablesAreTheirJsonOrItsText) {
  for (const Json& none : {Json(), Json(""), Json::array(), Json("[]")})
    EXPECT_EQ(*tools_of(none), "") << none;
  EXPECT_EQ(*tools_of(Json::parse(R"([{"b": 1, "a": 2}])")), R"([{"b":1,"a":2}])");
  EXPECT_EQ(*tools_of(Json(R"([{"b": 1}])")), R"([{"b":1}])");
  for (const Json& bad : {Json("hammer"), Json(3), Json::parse("[3]"), Json::parse("[{}]")})
    EXPECT_FALSE(tools_of(bad)) << bad;
  EXPECT_EQ(*variables_of(Json::parse(R"({"enable_thinking": false})")),
            R"({"enable_thinking":false})");
  EXPECT_EQ(*variables_of(Json()), "");
  EXPECT_EQ(variables_of(Json::parse(R"({"messages": []})")).error().message,
            "may not set 'messages'");
  EXPECT_FALSE(variables_of(Json::parse("[1]")));
}

// What a template makes of a call and of a content of parts.
std::string made(const char* source, const char* message) {
  const auto chat = ChatTemplate::parse(source, {}, "test");
  EXPECT_TRUE(chat) << chat.error().message;
  const auto text = chat->render(std::string("[") + message + "]", {});
  return text ? *text : "error: " + text.error().message;
}

constexpr const char* kTextArguments =
    R"({"role": "assistant", "content": "", "tool_calls": [{"function":
        {"name": "f", "arguments": "{\"a\":[1, 2],\"b\": \"é\"}"}}]})";
constexpr const char* kObjectArguments =
    R"({"role": "assistant", "content": "", "tool_calls": [{"function":
        {"name": "f", "arguments": {"a": [1, 2], "b": "é"}}}]})";

TEST(MessageForms, ArgumentsAreDecodedOnceAndTextWhereTheTemplateWantsText) {
  const char* as_json = "{{ messages[0].tool_calls[0].function.arguments | tojson }}";
  EXPECT_EQ(made(as_json, kTextArguments), R"({"a": [1, 2], "b": "é"})");
  EXPECT_EQ(made(as_json, kObjectArguments), R"({"a": [1, 2], "b": "é"})");
  // A template that joins them to a text, and one that prints them: both want text.
  for (const char* text : {"{{ 'x' + messages[0].tool_calls[0].function.arguments }}",
                           "x{{ messages[0].tool_calls[0].function.arguments }}"}) {
    EXPECT_EQ(made(text, kTextArguments), R"(x{"a":[1, 2],"b": "é"})") << "as it was written";
    EXPECT_EQ(made(text, kObjectArguments), R"(x{"a": [1, 2], "b": "é"})") << "as Python writes it";
  }
  // One that has both forms gets the object.
  const char* both =
      "{% set a = messages[0].tool_calls[0].function.arguments %}"
      "{% if a is string %}text{% else %}{{ a | tojson }}{% endif %}";
  EXPECT_EQ(made(both, kTextArguments), R"({"a": [1, 2], "b": "é"})");
  EXPECT_EQ(made("{% for k, v in messages[0].tool_calls[0].function.arguments.items() %}"
                 "{{ k }}={{ v }};{% endfor %}",
                 kTextArguments),
            "a=[1, 2];b=é;");
}

TEST(MessageForms, PartsAreAListAndOneTextWhereTheTemplateReadsNoList) {
  const char* parts =
      R"({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})";
  EXPECT_EQ(made("{% for p in messages[0].content %}<{{ p.text }}>{% endfor %}", parts), "<a><b>");
  EXPECT_EQ(made("{{ 'x' + messages[0].content }}", parts), "xab");
  EXPECT_EQ(made("x{{ messages[0].content | trim }}", parts), "xab") << "never as Python's list";
  EXPECT_EQ(made("{{ raise_exception('no') }}", parts),
            "error: test: the chat template refuses "
            "these messages: no");
}

}  // namespace
}  // namespace troupe::text
