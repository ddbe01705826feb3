// What the first rows of a data set are taken for.
#include "runtime/data/row_look.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace troupe::data {
namespace {

class RowLooks : public testing::Test {
 protected:
  core::Result<RowLook> look(const std::string& text,
                             RowNeed need,
                             const NamedColumns& named = {}) {
    const std::string file = (folder_ / "rows.jsonl").string();
    std::ofstream(file) << text;
    return look_at_rows(file, "--data", need, named);
  }
  // What it says, and the columns to name.
  std::string words(const std::string& text, RowNeed need, const NamedColumns& named = {}) {
    const auto found = look(text, need, named);
    if (!found) return found.error().message;
    std::string out = found->words;
    const NamedColumns& name = found->to_name;
    for (const auto& [key, column] :
         std::initializer_list<std::pair<const char*, std::string>>{{"prompt", name.prompt},
                                                                    {"answer", name.answer},
                                                                    {"chosen", name.chosen},
                                                                    {"rejected", name.rejected},
                                                                    {"label", name.label}}) {
      if (!column.empty()) out += "; " + std::string(key) + "=" + column;
    }
    return out;
  }
  test::TempFolder folder_;
};

TEST_F(RowLooks, ColumnsThatReadersFindNeedNoName) {
  EXPECT_EQ(words(R"({"input": "a", "output": "b"})", RowNeed::kAnswer),
            "a prompt in 'input' and its answer in 'output'");
  EXPECT_EQ(words(R"({"prompt": "a", "completion": "b"})", RowNeed::kAnswer),
            "a prompt in 'prompt' and its answer in 'completion'");
  EXPECT_EQ(words(R"({"messages": [{"role": "user", "content": "a"}]})", RowNeed::kAnswer),
            "messages in 'messages'");
  EXPECT_EQ(words(R"({"conversations": [{"from": "human", "value": "a"}]})", RowNeed::kAnswer),
            "ShareGPT rows");
  EXPECT_EQ(words(R"({"instruction": "a", "input": "", "output": "b"})", RowNeed::kAnswer),
            "Alpaca rows");
  EXPECT_EQ(words(R"({"text": "a"})", RowNeed::kText), "texts in 'text'");
  EXPECT_EQ(words(R"({"text": "a"})", RowNeed::kAnswer), "texts in 'text'");
  EXPECT_EQ(words(R"({"prompt": "a", "chosen": "b", "rejected": "c"})", RowNeed::kPair),
            "pairs of answers in 'chosen' and 'rejected' to a prompt in 'prompt'");
  EXPECT_EQ(words(R"({"prompt": "a", "completion": "b", "label": true})", RowNeed::kRated),
            "a prompt in 'prompt' and its answer in 'completion', rated in 'label'");
  EXPECT_EQ(words(R"({"prompt": "a", "completions": ["b"], "labels": [true]})", RowNeed::kSteps),
            "a prompt, a list of steps and one of labels");
}

TEST_F(RowLooks, OtherColumnsAreNamed) {
  EXPECT_EQ(words(R"({"question": "a", "answer": "b"})", RowNeed::kAnswer),
            "a prompt in 'question' and its answer in 'answer'; prompt=question; answer=answer");
  EXPECT_EQ(words(R"({"question": "a", "chosen": "b", "rejected": "c"})", RowNeed::kPair),
            "pairs of answers in 'chosen' and 'rejected' to a prompt in 'question'; "
            "prompt=question");
  EXPECT_EQ(words(R"({"q": "a", "r": "b"})", RowNeed::kAnswer, {"q", "r", "", "", ""}),
            "a prompt in 'q' and its answer in 'r'")
      << "a configuration names them";
  EXPECT_EQ(words(R"({"question": "a", "answer": "4"})", RowNeed::kPrompt),
            "a prompt in 'question' with the expected answer in 'answer'; prompt=question");
}

TEST_F(RowLooks, WhatIsNoRowSaysWhatIsThere) {
  EXPECT_NE(words(R"({"a": 1})", RowNeed::kAnswer).find("rows.jsonl:1: no column of the prompt"),
            std::string::npos);
  EXPECT_NE(words(R"({"prompt": "a", "x": 1})", RowNeed::kAnswer)
                .find("no column of the answer is known by its name (there is: prompt, x); name "
                      "it: --data.output_key COLUMN"),
            std::string::npos);
  EXPECT_NE(words(R"({"chosen": "a"})", RowNeed::kPair).find("the worse answer"),
            std::string::npos);
  EXPECT_NE(words("", RowNeed::kText).find("holds no rows"), std::string::npos);
}

TEST_F(RowLooks, ItLooksAtTheFirstThousand) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "{\"prompt\": \"a\", \"answer\": " + std::to_string(i) + "}\n";
  auto found = look(text, RowNeed::kPrompt);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->rows, 1000u);
  EXPECT_TRUE(found->all);
  EXPECT_EQ(found->labels.size(), RowLook::kLabels);
  EXPECT_EQ(found->labels[3], "3");
  EXPECT_EQ(found->firsts.size(), RowLook::kFirsts);
  EXPECT_EQ(found->firsts[0]["prompt"], "a");
  found = look(text + "{\"prompt\": \"a\"}\n", RowNeed::kPrompt);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, 1000u);
  EXPECT_FALSE(found->all);
}

}  // namespace
}  // namespace troupe::data
