// Forced calls: what each format's grammar lets a model write is what the reader of that format
// finds, and nothing else.
#include "runtime/dialects/tools/forced_call.hpp"

#include "runtime/dialects/tools/tool_reader.hpp"
#include "tests/unit/runtime/guide/masks.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::dialects {
namespace {

constexpr const char* kForcedTools =
    R"([{"type":"function","function":{"name":"add","parameters":{"type":"object",
         "properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}},
        {"type":"function","function":{"name":"say \"hi\""}}])";

GenerateRequest calling(std::string tool = "", bool one = false) {
  GenerateRequest request;
  request.tools = request.must_call = true;
  request.tools_json = kForcedTools;
  request.tool_names = {"add", "say \"hi\""};
  request.called_tool = std::move(tool);
  request.one_call = one;
  return request;
}

// A tokenizer of bytes with marks as special tokens.
std::string json_with(const std::vector<std::string>& marks) {
  nlohmann::json tokenizer = cli::byte_tokenizer();
  nlohmann::json mark = tokenizer["added_tokens"][0];
  int id = 257;
  for (const std::string& text : marks) {
    mark["id"] = id++;
    mark["content"] = text;
    tokenizer["added_tokens"].push_back(mark);
  }
  return tokenizer.dump();
}

// Whether the model may write exactly this text and end. Marks are tokens from 257 on.
bool allows(ToolFormat format,
            const GenerateRequest& request,
            std::string_view text,
            const std::vector<std::string>& marks = {}) {
  const std::string file = json_with(marks);
  const auto tokenizer = text::Tokenizer::parse(file, {}, "a test");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  const auto grammar = forced_call(request, format, *tokenizer);
  EXPECT_TRUE(std::holds_alternative<guide::Grammar>(grammar))
      << std::get<ApiError>(grammar).message;
  guide::GuideMaker maker = guide::test::maker_of(file, 260);
  guide::test::Guide guide(guide::test::make(std::move(maker), std::get<guide::Grammar>(grammar)));
  const auto encoded = tokenizer->encode(text);
  EXPECT_TRUE(encoded);
  for (const std::int32_t token : encoded->ids) {
    const auto ids = guide.ids();
    if (std::find(ids.begin(), ids.end(), token) == ids.end()) return false;
    guide.take_id(token);
  }
  return guide.may_end();
}

std::vector<ToolCall> found(ToolFormat format, std::string_view text) {
  ToolReader reader(format, {"add", "say \"hi\""});
  const ToolText all = reader.finish(text);
  EXPECT_EQ(all.content, "") << text;
  return all.calls;
}

struct Written {
  ToolFormat format;
  const char *one, *two;
  std::vector<std::string> marks;
};

TEST(ForcedCall, EachFormatWritesWhatItsReaderFinds) {
  const std::vector<Written> all = {
      {ToolFormat::kHermes,
       "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 12}}\n</tool_call>",
       "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\":1}}\n</tool_call>\n"
       "<tool_call>\n{\"name\": \"say \\\"hi\\\"\", \"arguments\": {}}\n</tool_call>",
       {}},
      {ToolFormat::kLlama3,
       R"({"name": "add", "parameters": {"a": 12}})",
       R"({"name": "add", "parameters": {"a": 1}}; {"name": "say \"hi\"", "parameters": {}})",
       {}},
      {ToolFormat::kMistral,
       R"([TOOL_CALLS][{"name": "add", "arguments": {"a": 12}}])",
       R"([TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "say \"hi\"", "arguments": {}}])",
       {}},
      {ToolFormat::kMistral,
       R"([TOOL_CALLS][{"name": "add", "arguments": {"a": 12}}])",
       R"([TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "say \"hi\"", "arguments": {}}])",
       {"[TOOL_CALLS]"}},
      {ToolFormat::kMistral,
       R"([TOOL_CALLS]add[ARGS]{"a": 12})",
       R"([TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]say "hi"[ARGS]{})",
       {"[TOOL_CALLS]", "[ARGS]"}},
      {ToolFormat::kJson,
       R"({"name": "add", "arguments": {"a": 12}})",
       "{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n{\"name\": \"say \\\"hi\\\"\", "
       "\"arguments\": {}}",
       {}},
  };
  for (const Written& written : all) {
    SCOPED_TRACE(written.one);
    EXPECT_TRUE(allows(written.format, calling(), written.one, written.marks));
    EXPECT_TRUE(allows(written.format, calling(), written.two, written.marks));
    EXPECT_TRUE(allows(written.format, calling("add"), written.one, written.marks));
    EXPECT_TRUE(allows(written.format, calling("add", true), written.one, written.marks));
    EXPECT_FALSE(allows(written.format, calling("", true), written.two, written.marks));
    EXPECT_FALSE(allows(written.format, calling("add"), written.two, written.marks));
    EXPECT_FALSE(allows(written.format, calling("say \"hi\""), written.one, written.marks));
    EXPECT_FALSE(allows(written.format, calling(), "", written.marks));
    EXPECT_FALSE(allows(written.format, calling(), "no call", written.marks));
    const std::vector<ToolCall> one = found(written.format, written.one);
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(one[0].name, "add");
    EXPECT_EQ(found(written.format, written.two).size(), 2u);
  }
}

TEST(ForcedCall, ArgumentsAreThoseOfTheSchema) {
  EXPECT_FALSE(allows(ToolFormat::kJson, calling(), R"({"name": "add", "arguments": {}})"));
  EXPECT_FALSE(allows(ToolFormat::kJson, calling(), R"({"name": "add", "arguments": {"a": "x"}})"));
  EXPECT_FALSE(
      allows(ToolFormat::kJson, calling(), R"({"name": "add", "arguments": {"a": 1, "b": 2}})"));
  EXPECT_TRUE(
      allows(ToolFormat::kJson, calling(), R"({"name": "say \"hi\"", "arguments": {"b": [2]}})"));
}

TEST(ForcedCall, ParametersThatAreNoObjectAreNamed) {
  GenerateRequest request = calling();
  request.tools_json = R"([{"function":{"name":"f","parameters":{"type":"string"}}}])";
  const auto tokenizer = text::Tokenizer::parse(json_with({}), {}, "a test");
  const auto made = forced_call(request, ToolFormat::kJson, *tokenizer);
  const auto* const error = std::get_if<ApiError>(&made);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->param, "tools[0].function.parameters");
  EXPECT_NE(error->message.find("'f'"), std::string::npos) << error->message;
}

}  // namespace
}  // namespace troupe::dialects
