// What rows of new users are told: tools that a template leaves out, messages written as text, rows
// of another kind than the method's, a column that a setting names and no row has, text that is
// called a table.
#include "runtime/data/chat_rows.hpp"
#include "runtime/data/default_columns.hpp"
#include "runtime/data/foreign_file.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/data/row_format.hpp"
#include "runtime/data/row_kinds.hpp"
#include "runtime/data/tools_watch.hpp"
#include "runtime/text/unseen_tools.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace troupe::data {
namespace {

constexpr const char* kBlind = "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}";
constexpr const char* kSeeing =
    "{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}"
    "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}";

text::ChatTemplate door_template(const char* source) {
  return *text::ChatTemplate::parse(source, {}, "M/chat_template.jinja");
}

std::string warning_of(const char* source, std::initializer_list<const char*> rows) {
  const text::ChatTemplate chat = door_template(source);
  ToolsWatch watch(&chat);
  int line = 0;
  for (const char* row : rows)
    watch.see(Json::parse(row), "t.jsonl:" + std::to_string(++line));
  return watch.warning();
}

constexpr const char* kDoorTools =
    R"("tools": [{"type": "function", "function": {"name": "add"}}])";
const std::string kDoorAsked = std::string(R"({"messages": [{"role": "user", "content": "2+3"}, )"
                                           R"({"role": "assistant", "content": "I call add"}], )") +
                               kDoorTools + "}";

TEST(UnseenTools, AreThoseThatChangeNothingAndAreNotNamed) {
  const std::string two = R"([{"name": "sub"}, {"function": {"name": "add"}}])";
  EXPECT_EQ(text::unseen_tools("a", "a", two), "add, sub");
  EXPECT_EQ(text::unseen_tools("a", "b", two), "");
  EXPECT_EQ(text::unseen_tools("add, sub", "add, sub", two), "") << "the messages name them";
  EXPECT_EQ(text::unseen_tools("add", "add", two), "add, sub") << "one of two";
  EXPECT_EQ(text::unseen_tools("a", "a", R"([{"x": 1}])"), "");
}

TEST(ToolsWatch, SaysOnceWhichToolsTheTemplateLeavesOut) {
  EXPECT_EQ(warning_of(kBlind, {R"({"messages": [{"role": "user", "content": "a"}]})",
                                kDoorAsked.c_str(), kDoorAsked.c_str()}),
            "t.jsonl:2: column 'tools' has add, and the chat template (M/chat_template.jinja) "
            "shows nothing of them, so the model never sees them; put a chat_template.jinja that "
            "reads `tools` into the model folder");
  EXPECT_EQ(warning_of(kSeeing, {kDoorAsked.c_str()}), "");
  const std::string told =
      std::string(R"({"messages": [{"role": "system", "content": "add has a, b"}], )") +
      kDoorTools + "}";
  EXPECT_EQ(warning_of(kBlind, {told.c_str()}), "") << "the system message has them";
  EXPECT_EQ(
      warning_of(kBlind, {R"({"messages": [{"role": "user", "content": "a"}], "tools": []})"}), "");
  ToolsWatch none(nullptr);
  none.see(Json::parse(kDoorAsked), "t.jsonl:1");
  EXPECT_EQ(none.warning(), "") << "nothing goes through a template";
}

std::string listed_row(const std::string& row, const MessageColumns& columns) {
  const auto made = with_listed_messages(Json::parse(row), columns, parse::Numbers::kWholeIntegers);
  if (!made) return made.error().message;
  return *made ? (*made)->dump() : "as it is";
}

TEST(ListedMessages, ATextThatHoldsMessagesIsAList) {
  const MessageColumns all{{"messages", "prompt"}, {"chosen", "rejected"}};
  const std::string text =
      R"({"messages": " [{\"role\": \"user\", \"content\": \"a\"}]", "id": 1})";
  EXPECT_EQ(listed_row(text, all), R"({"messages":[{"role":"user","content":"a"}],"id":1})");
  EXPECT_EQ(listed_row(R"({"prompt": "[{\"from\": \"human\", \"value\": \"a\"}]"})", all),
            R"({"prompt":[{"from":"human","value":"a"}]})");
  // An answer that is JSON stays a text beside a prompt that is one.
  const std::string answer = R"("chosen": "[{\"role\": \"assistant\", \"content\": \"b\"}]")";
  EXPECT_EQ(listed_row(R"({"prompt": "a", )" + answer + "}", all), "as it is");
  EXPECT_EQ(listed_row(R"({"prompt": [{"role": "user", "content": "a"}], )" + answer + "}", all),
            R"({"prompt":[{"role":"user","content":"a"}],)"
            R"("chosen":[{"role":"assistant","content":"b"}]})");
  for (const char* row : {R"({"prompt": "[{\"a\": 1}]"})", R"({"prompt": "[1]"})",
                          R"({"prompt": "[{no"})", R"({"prompt": "[]"})", R"({"messages": "a"})",
                          R"({"label": "[{\"role\": \"user\", \"content\": \"a\"}]"})"})
    EXPECT_EQ(listed_row(row, all), "as it is") << row;
}

TEST(ListedMessages, PythonsOwnWritingIsRefusedWithTheLineThatMendsIt) {
  const std::string said =
      listed_row(R"({"messages": "[{'role': 'user', 'content': 'a'}]"})", {{"messages"}, {}});
  EXPECT_TRUE(
      said.starts_with("column 'messages' is a text that begins as a list of messages and is "
                       "no JSON; Python's own way"))
      << said;
  EXPECT_NE(said.find("ast.literal_eval(r[\"messages\"])"), said.npos) << said;
  EXPECT_EQ(listed_row(R"({"input": "2+3", "messages": "[{'role': 'user', 'content': 'a'}]"})",
                       {{"messages", "conversations", "input"}, {}}),
            "as it is")
      << "another column is the prompt";
}

std::string about_row(const std::string& row, config::MethodRows wanted) {
  const core::Error error = core::advised(core::ErrorCode::kData, "no column 'x'", "name it");
  const core::Error told = about_kind(error, Json::parse(row), wanted);
  return told.message == error.message ? "" : std::string(told.advice().substr(9));
}

TEST(RowKinds, RowsOfAnotherKindNameTheMethodsThatReadThem) {
  using config::MethodRows;
  EXPECT_EQ(
      about_row(R"({"prompt": "a", "completion": "b"})", MethodRows::kPair),
      "read are pairs of answers (`chosen` and `rejected`), and this row (prompt, "
      "completion) is one of prompts with an answer, which `troupe train` reads with sft, distill");
  const auto fits = [](const std::string& row, MethodRows wanted) {
    const std::string all = about_row(row, wanted);
    const auto at = all.rfind("reads with ");
    return at == all.npos ? std::string() : all.substr(at + 11);
  };
  EXPECT_EQ(fits(R"({"chosen": "a", "rejected": "b"})", MethodRows::kAnswer),
            "rm, dpo, ipo, cdpo, orpo, simpo, cpo");
  EXPECT_EQ(fits(R"({"prompt": "a", "completion": "b", "label": true})", MethodRows::kPair),
            "kto, bco");
  EXPECT_EQ(fits(R"({"text": "a"})", MethodRows::kPair), "pretrain");
  EXPECT_EQ(fits(R"({"prompt": "a", "completions": ["b"], "labels": [1]})", MethodRows::kAnswer),
            "prm");
  EXPECT_EQ(fits(R"({"prompt": "a"})", MethodRows::kAnswer), "ppo");
  EXPECT_EQ(fits(R"({"input": "a", "answer": "b"})", MethodRows::kAnswer), "") << "in doubt";
  EXPECT_EQ(fits(R"({"messages": []})", MethodRows::kAnswer), "") << "the kind is right";
  EXPECT_EQ(fits(R"({"messages": []})", MethodRows::kPrompt), "") << "its prompt would do";
  EXPECT_EQ(fits(R"({"prompt": "a", "completion": "b", "label": true})", MethodRows::kAnswer), "")
      << "its answer would do";
}

TEST(DefaultColumns, ANameThatIsAWishIsNotPassedOver) {
  const Json row = Json::parse(R"({"messages": [], "conversations": [], "instruction": "a"})");
  EXPECT_EQ(prompt_column(row, "input"), "messages");
  EXPECT_EQ(prompt_column(row, "prompt"), "messages");
  EXPECT_EQ(prompt_column(row, "qeustion"), "qeustion");
  EXPECT_EQ(format_of(row, "input"), RowFormat::kShareGpt);
  EXPECT_EQ(format_of(row, ""), RowFormat::kShareGpt);
  EXPECT_EQ(format_of(row, "instruction"), RowFormat::kShareGpt);
  EXPECT_EQ(format_of(row, "qeustion"), RowFormat::kColumns);
}

TEST(ForeignFile, TextThatIsCalledATableSaysWhatItIs) {
  const test::TempFolder folder;
  const auto said = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    const auto checked = check_rows_file(folder / name, "data.dataset");
    std::string text = checked ? "" : checked.error().message;
    const std::string path = (folder / "").string();
    for (auto at = text.find(path); at != text.npos; at = text.find(path))
      text.erase(at, path.size());
    return text;
  };
  EXPECT_EQ(said("a.parquet", "{\"input\": \"2+2\"}\n{}"),
            "a.parquet: its name says .parquet, and it is text, which begins with: {\"input\": "
            "\"2+2\"}; rename it by what it is: mv -n a.parquet a.jsonl");
  EXPECT_NE(said("b.feather", "[{}]").find("mv -n b.feather b.json"), std::string::npos);
  EXPECT_NE(said("c.arrow", "q,a\n1,2\n").find("mv -n c.arrow c.csv"), std::string::npos);
  EXPECT_NE(said("d.jsonl.gz", "{}\n").find("mv -n d.jsonl.gz d.jsonl"), std::string::npos);
  EXPECT_EQ(said("e.jsonl.gz", "\x1F\x8B\x08"), "");
  EXPECT_EQ(said("f.parquet", std::string("PAR1\0\0", 6)), "") << "a damaged one has its own words";
  EXPECT_EQ(said("g.parquet", ""), "");
  EXPECT_EQ(said("h.jsonl", "{}\n"), "");
}

}  // namespace
}  // namespace troupe::data
