// Calls in texts as models write them, whole and cut at every place.
#include "runtime/dialects/tools/tool_reader.hpp"

#include <gtest/gtest.h>

namespace troupe::dialects {
namespace {

struct Case {
  ToolFormat format;
  const char* text;
  const char* content;
  std::vector<ToolCall> calls;
};

const ToolCall kSum{"add", R"({"a":1,"b":"x } y"})"}, kTime{"now", "{}"};

const Case kCases[] = {
    // What the templates of Hermes and Qwen show to the model.
    {ToolFormat::kHermes,
     "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": \"x } y\"}}\n</tool_call>",
     "",
     {kSum}},
    {ToolFormat::kHermes,
     "I add.\n<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":\"x } y\"}}</tool_call>\n"
     "<tool_call>{\"name\":\"now\"}</tool_call>",
     "I add.\n",
     {kSum, kTime}},
    {ToolFormat::kHermes, "<tool_call>{\"name\":\"now\",\"arguments\":{}}", "", {kTime}},
    {ToolFormat::kHermes, "<tool_call>{\"name\":\"now\"}</tool_call> Done.", "Done.", {kTime}},
    {ToolFormat::kHermes, "1 < 2 <tool", "1 < 2 <tool", {}},
    {ToolFormat::kHermes, "<tool_call> now()</tool_call>", "<tool_call> now()</tool_call>", {}},
    {ToolFormat::kHermes, "<tool_call>{\"name\":\"now\"", "<tool_call>{\"name\":\"now\"", {}},
    {ToolFormat::kHermes,
     "<tool_call>{\"nam\":\"now\"}</tool_call>.",
     "<tool_call>{\"nam\":\"now\"}</tool_call>.",
     {}},
    {ToolFormat::kHermes,
     "<tool_call>{\"name\":\"now\",\"arguments\":[1]}</tool_call>",
     "<tool_call>{\"name\":\"now\",\"arguments\":[1]}</tool_call>",
     {}},
    // Llama 3.1, with its tag and without, and several calls.
    {ToolFormat::kLlama3, "<|python_tag|>{\"name\": \"now\", \"parameters\": {}}", "", {kTime}},
    {ToolFormat::kLlama3,
     "{\"name\":\"add\",\"parameters\":{\"a\":1,\"b\":\"x } y\"}}; "
     "{\"name\":\"now\",\"parameters\":{}}",
     "",
     {kSum, kTime}},
    {ToolFormat::kLlama3,
     "See: {\"name\":\"now\",\"parameters\":{}}",
     "See: {\"name\":\"now\",\"parameters\":{}}",
     {}},
    {ToolFormat::kLlama3, "See\n{\"name\":\"now\"}", "See\n{\"name\":\"now\"}", {}},
    {ToolFormat::kLlama3, "<|python", "<|python", {}},
    // Mistral's list, and the form of its tokenizers from version 11.
    {ToolFormat::kMistral,
     "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\":1,\"b\":\"x } y\"}}, {\"name\": "
     "\"now\", "
     "\"arguments\": {}}]",
     "",
     {kSum, kTime}},
    {ToolFormat::kMistral,
     "So.[TOOL_CALLS]add[ARGS]{\"a\":1,\"b\":\"x } y\"}[TOOL_CALLS]now[ARGS]{}",
     "So.",
     {kSum, kTime}},
    {ToolFormat::kMistral, "[TOOL_CALLS]now{}", "", {kTime}},
    {ToolFormat::kMistral, "[TOOL_CALLS]now", "[TOOL_CALLS]now", {}},
    {ToolFormat::kMistral, "[TOOL_CALLS][1]", "[TOOL_CALLS][1]", {}},
    // Plain JSON on a line of its own; other JSON is text.
    {ToolFormat::kJson,
     "I add.\n{\"name\": \"add\", \"arguments\": {\"a\":1,\"b\":\"x } y\"}}\n",
     "I add.\n",
     {kSum}},
    {ToolFormat::kJson, "{\"name\": \"now\", \"arguments\": \"{}\"}", "", {kTime}},
    {ToolFormat::kJson,
     "{\"name\": \"later\", \"arguments\": {}}",
     "{\"name\": \"later\", \"arguments\": {}}",
     {}},
    {ToolFormat::kJson, "say {\"name\": \"now\"}", "say {\"name\": \"now\"}", {}},
    {ToolFormat::kJson,
     "{\"a\": {\"b\": 1}} and\n {\"name\": \"now\"}",
     "{\"a\": {\"b\": 1}} and\n ",
     {kTime}},
    {ToolFormat::kJson, "{{{{\"", "{{{{\"", {}},
};

ToolText read(const Case& one, const std::vector<std::size_t>& cuts) {
  ToolReader reader(one.format, {"add", "now"});
  const std::string text = one.text;
  ToolText all;
  const auto take = [&](ToolText part) {
    all.content += part.content;
    all.calls.insert(all.calls.end(), part.calls.begin(), part.calls.end());
  };
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    take(reader.push(text.substr(from, cut - from)));
    from = cut;
  }
  take(reader.push(text.substr(from)));
  take(reader.finish());
  return all;
}

TEST(ToolReader, FindsCallsHoweverTheTextIsCut) {
  for (const Case& one : kCases) {
    const std::size_t size = std::string(one.text).size();
    std::vector<std::vector<std::size_t>> ways = {{}};
    for (std::size_t a = 0; a <= size; ++a) {
      ways.push_back({a});
      ways.push_back({a, std::min(size, a + 3)});
    }
    ways.emplace_back();
    for (std::size_t a = 1; a < size; ++a)
      ways.back().push_back(a);  // character by character
    for (const auto& cuts : ways) {
      const ToolText got = read(one, cuts);
      EXPECT_EQ(got.content, one.content) << one.text;
      EXPECT_EQ(got.calls, one.calls) << one.text;
      if (HasFailure()) return;
    }
  }
}

TEST(ToolReader, TextThatCannotBecomeACallIsNotHeldBack) {
  ToolReader hermes(ToolFormat::kHermes, {});
  EXPECT_EQ(hermes.push("a <t").content, "a ");
  EXPECT_EQ(hermes.push("oo").content, "");
  EXPECT_EQ(hermes.push(" b").content, "<too b");
  ToolReader plain(ToolFormat::kJson, {"now"});
  EXPECT_EQ(plain.push("a {").content, "a {");
  EXPECT_EQ(plain.push("\n").content, "\n");
  EXPECT_EQ(plain.push("{\"name\": \"no").content, "");
  EXPECT_EQ(plain.push("w\"}").calls, std::vector<ToolCall>{kTime});
}

TEST(ToolReader, CallsBeyondTheLimitAreText) {
  ToolReader reader(ToolFormat::kHermes, {});
  const std::string call = R"(<tool_call>{"name":"now"}</tool_call>)";
  ToolText all;
  for (int i = 0; i < 130; ++i) {
    const ToolText part = reader.push(call);
    all.content += part.content;
    all.calls.insert(all.calls.end(), part.calls.begin(), part.calls.end());
  }
  EXPECT_EQ(all.calls.size(), 128u);
  EXPECT_EQ(all.content + reader.finish().content, call + call);
}

TEST(ToolReader, DeepJsonIsText) {
  ToolReader reader(ToolFormat::kJson, {"now"});
  const std::string deep =
      R"({"name":"now","arguments":{"a":)" + std::string(5000, '[') + std::string(5000, ']') + "}}";
  ToolText got = reader.push(deep);
  got.content += reader.finish().content;
  EXPECT_EQ(got.content, deep);
  EXPECT_TRUE(got.calls.empty());
}

TEST(ToolFormat, IsThatOfTheTemplate) {
  EXPECT_EQ(tool_format_of_template("a <tool_call> b"), ToolFormat::kHermes);
  EXPECT_EQ(tool_format_of_template("'[TOOL_CALLS] ['"), ToolFormat::kMistral);
  EXPECT_EQ(tool_format_of_template("<|python_tag|>"), ToolFormat::kLlama3);
  EXPECT_EQ(tool_format_of_template("{{ messages }}"), ToolFormat::kJson);
  EXPECT_EQ(tool_format_of("llama3_json"), ToolFormat::kLlama3);
  EXPECT_EQ(tool_format_of("pythonic"), std::nullopt);
}

}  // namespace
}  // namespace troupe::dialects
