// The fields that ask for text of a grammar, in all dialects, and those that force a call.
#include "runtime/dialects/generate_request.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::dialects {
namespace {

using guide::GrammarKind;

Read read_prompt(const std::string& fields) {
  return read_completion(R"({"prompt":"a",)" + fields + "}", {});
}

Read read_question(const std::string& fields) {
  return read_chat(R"({"messages":[{"role":"user","content":"a"}],)" + fields + "}", {});
}

Read read_ids(const std::string& fields) {
  return read_token_generate(R"({"token_ids":[1],"sampling_params":{)" + fields + "}}", {});
}

struct Asked {
  const char* fields;
  GrammarKind kind;
  const char* text;
};

const Asked kAsked[] = {
    {R"("response_format":{"type":"json_object"})", GrammarKind::kJsonSchema,
     R"({"type":"object"})"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,
        "schema":{"type":"integer"}}})",
     GrammarKind::kJsonSchema, R"({"type":"integer"})"},
    {R"("guided_json":{"enum":[1,2]})", GrammarKind::kJsonSchema, R"({"enum":[1,2]})"},
    {R"("guided_json":"{\"enum\": [1]}")", GrammarKind::kJsonSchema, R"({"enum": [1]})"},
    {R"("guided_regex":"a+")", GrammarKind::kRegex, "a+"},
    {R"("guided_grammar":"start: \"a\"")", GrammarKind::kLark, "start: \"a\""},
    {R"("guided_choice":["a\"b","c"])", GrammarKind::kLark, R"(start: "a\"b" | "c")"},
    {R"("structured_outputs":{"json":{"type":"null"}})", GrammarKind::kJsonSchema,
     R"({"type":"null"})"},
    {R"("structured_outputs":{"regex":"b","json":null})", GrammarKind::kRegex, "b"},
    {R"("structured_outputs":{"grammar":"start: \"b\""})", GrammarKind::kLark, "start: \"b\""},
    {R"("structured_outputs":{"choice":["x"]})", GrammarKind::kLark, R"(start: "x")"},
    {R"("structured_outputs":{"json_object":true})", GrammarKind::kJsonSchema,
     R"({"type":"object"})"},
};

TEST(GuideFields, EachFormIsAGrammarInEachDialect) {
  for (const auto read_by : {read_prompt, read_question, read_ids}) {
    for (const Asked& asked : kAsked) {
      const Read read = read_by(asked.fields);
      const auto* const request = std::get_if<GenerateRequest>(&read);
      ASSERT_NE(request, nullptr) << asked.fields << ": " << std::get<ApiError>(read).message;
      ASSERT_TRUE(request->grammar) << asked.fields;
      EXPECT_EQ(request->grammar->kind, asked.kind) << asked.fields;
      EXPECT_EQ(request->grammar->text, asked.text);
    }
  }
}

TEST(GuideFields, TextAndWhatIsOffAskForNoGrammar) {
  for (const char* fields :
       {R"("response_format":{"type":"text"})", R"("response_format":null)", R"("guided_regex":"")",
        R"("structured_outputs":{"json_object":false})", R"("structured_outputs":{})"}) {
    const Read read = read_prompt(fields);
    const auto* const request = std::get_if<GenerateRequest>(&read);
    ASSERT_NE(request, nullptr) << fields << ": " << std::get<ApiError>(read).message;
    EXPECT_FALSE(request->grammar) << fields;
  }
}

TEST(GuideFields, WhatIsWrongIsNamed) {
  struct Wrong {
    const char* fields;
    const char* param;
    const char* why;
  };
  for (const Wrong& wrong : {
           Wrong{R"("response_format":{"type":"xml"})", "response_format", "json_schema"},
           Wrong{R"("response_format":"json")", "response_format", "must be an object"},
           Wrong{R"("response_format":{"type":"json_schema"})", "response_format", "a schema"},
           Wrong{R"("guided_json":3)", "guided_json", "must be a JSON schema"},
           Wrong{R"("guided_regex":["a"])", "guided_regex", "must be a string"},
           Wrong{R"("guided_choice":[])", "guided_choice", "list of 1 to 4096"},
           Wrong{R"("guided_choice":[1])", "guided_choice", "list of texts"},
           Wrong{R"("guided_grammar":"root ::= \"a\"")", "guided_grammar", "Lark"},
           Wrong{R"("guided_regex":"a","guided_choice":["b"])", "guided_choice",
                 "does not go with 'guided_regex'"},
           Wrong{R"("structured_outputs":{"jason":{}})", "structured_outputs.jason",
                 "did you mean 'structured_outputs.json'"},
           Wrong{R"("structured_outputs":{"regex":"a","choice":["b"]})",
                 "structured_outputs.choice", "does not go with"},
           Wrong{R"("structured_outputs":{"structural_tag":"{}"})",
                 "structured_outputs.structural_tag", "not supported"},
       }) {
    const Read read = read_prompt(wrong.fields);
    const auto* const error = std::get_if<ApiError>(&read);
    ASSERT_NE(error, nullptr) << wrong.fields;
    EXPECT_EQ(error->param, wrong.param) << error->message;
    EXPECT_NE(error->message.find(wrong.why), std::string::npos) << error->message;
  }
}

const std::string kTools =
    R"("tools":[{"type":"function","function":{"name":"add"}},
                {"type":"function","function":{"name":"mul"}}])";

TEST(GuideFields, AToolChoiceMayForceACall) {
  const auto chosen = [](const std::string& choice) {
    const Read read = read_question(kTools + choice);
    const auto* const request = std::get_if<GenerateRequest>(&read);
    EXPECT_NE(request, nullptr) << choice << ": " << std::get<ApiError>(read).message;
    return request == nullptr ? GenerateRequest() : *request;
  };
  const GenerateRequest any = chosen(R"(,"tool_choice":"required","parallel_tool_calls":false)");
  EXPECT_TRUE(any.tools && any.must_call && any.one_call);
  EXPECT_EQ(any.called_tool, "");
  const GenerateRequest named =
      chosen(R"(,"tool_choice":{"type":"function","function":{"name":"mul"}})");
  EXPECT_TRUE(named.tools && named.must_call);
  EXPECT_EQ(named.called_tool, "mul");
  EXPECT_FALSE(chosen(R"(,"tool_choice":"auto")").must_call);
  EXPECT_FALSE(chosen(R"(,"tool_choice":"none")").must_call);
  for (const char* choice : {R"(,"tool_choice":{"type":"function","function":{"name":"div"}})",
                             R"(,"tool_choice":{"type":"function"})", R"(,"tool_choice":"any")",
                             R"(,"tool_choice":"required","guided_regex":"a")"}) {
    const Read read = read_question(kTools + choice);
    const auto* const error = std::get_if<ApiError>(&read);
    ASSERT_NE(error, nullptr) << choice;
    EXPECT_EQ(error->param, "tool_choice") << error->message;
  }
}

}  // namespace
}  // namespace troupe::dialects
