// Rows with labels for steps: where the placeholders are, hard and soft labels, rows that list
// their steps, and errors that name file and line.
#include "runtime/data/supervised_dataset.hpp"
#include "tests/unit/runtime/data/chat_support.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

class StepRows : public testing::Test {
 protected:
  StepRows() {
    columns_.kind = RowKind::kSteps;
    columns_.label_key = "label";
    columns_.steps = {"#", '#', {"+", "-"}, {'+', '-'}, "\n\n"};
  }
  core::Result<SupervisedDataset> load(const std::string& text) {
    folder_.write("t.jsonl", text + "\n");
    return SupervisedDataset::load((folder_.path() / "t.jsonl").string(), "data.dataset", columns_,
                                   limits_, tokenizer_, chat_ ? &*chat_ : nullptr);
  }
  std::string refusal(const std::string& text) {
    auto rows = load(text);
    if (rows) return "accepted";
    const std::string& message = rows.error().message;
    return message.substr(message.find("t.jsonl"));
  }
  static std::string shown(std::span<const std::int32_t> tokens) {
    std::string out;
    for (const std::int32_t token : tokens)
      out += token == text::kEnd ? '$' : static_cast<char>(token);
    return out;
  }
  static std::string placed(const SupervisedRow& row) {
    std::string out = shown(row.answer);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (row.learn[i] == 0) out[i] = '.';
    return out;
  }

  text::TempFolder folder_;
  text::Tokenizer tokenizer_ = text::byte_level_tokenizer(with_end("<|end|>"));
  core::Result<text::ChatTemplate> chat_ = text::ChatTemplate::parse(kChat, {}, "test");
  SupervisedLimits limits_{.max_len = 200, .context = 256, .vocab = 257};
  SupervisedColumns columns_;
};

TEST_F(StepRows, HardLabelsAreTokensAtThePlaceholders) {
  auto rows = load(R"({"input": "q a# b#", "label": ["+", "-"]})"
                   "\n"
                   R"({"input": "c#", "label": ["-"]})");
  ASSERT_TRUE(rows) << rows.error().message;
  const auto row = rows->row(0);
  EXPECT_EQ(shown(row.answer), "q a# b#") << "no end token is added";
  EXPECT_EQ(placed(row), "...#..#");
  EXPECT_EQ(shown(row.labels), "+-");
  EXPECT_TRUE(row.shares.empty());
  EXPECT_EQ(shown(rows->row(1).labels), "-");
}

TEST_F(StepRows, NumbersAndBooleansAreProbabilitiesOfTheFirstRewardToken) {
  auto rows = load(R"({"input": "c#", "label": ["-"]})"
                   "\n"
                   R"({"input": "a#b#c#d#", "label": [0.25, 1, true, false]})");
  ASSERT_TRUE(rows) << rows.error().message;
  const auto row = rows->row(1);
  EXPECT_EQ(std::vector(row.shares.begin(), row.shares.end()),
            (std::vector<float>{0.25f, 1, 1, 0}));
  EXPECT_TRUE(row.labels.empty());
  EXPECT_EQ(shown(rows->row(0).labels), "-");
}

TEST_F(StepRows, WithoutRewardTokensAnyTokenLabels) {
  columns_.steps.rewards.clear();
  columns_.steps.reward_ids.clear();
  auto rows = load(R"({"input": "a#b#", "label": ["x", "y"]})");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(shown(rows->row(0).labels), "xy");
}

// As TRL's process reward trainer has its rows.
TEST_F(StepRows, AListOfStepsGetsItsPlaceholders) {
  auto rows = load(
      R"({"prompt": "2+3*4?", "completions": ["3*4=12", "2+12=14"], "labels": [true, false]})");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(shown(rows->row(0).answer), "2+3*4?3*4=12#\n\n2+12=14#");
  EXPECT_EQ(rows->row(0).shares.size(), 2u);
  ASSERT_EQ(rows->notes().size(), 1u);
  EXPECT_NE(rows->notes()[0].find("rows of steps"), std::string::npos);
  columns_.apply_chat_template = true;
  rows = load(R"({"prompt": "2?", "completions": ["a", "b"], "labels": [1, 0]})");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(shown(rows->row(0).answer), "[user] 2?\n[assistant] a#\n\nb#$");
}

TEST_F(StepRows, ADialogueMayHoldThePlaceholders) {
  auto rows = load(R"({"input": [{"role": "user", "content": "q"}, )"
                   R"({"role": "assistant", "content": "a#b#"}], "label": ["+", "+"]})");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(placed(rows->row(0)).substr(21), ".#.#.");
}

TEST_F(StepRows, BadRowsAreNamed) {
  EXPECT_EQ(refusal(R"({"input": "a# b#", "label": ["+"]})"),
            "t.jsonl:1: column 'label' has 1 labels, but the text has 2 tokens '#'; give one label "
            "for each (--prm.placeholder_token names the token, which must not melt into what "
            "stands next to it)");
  EXPECT_NE(refusal(R"({"input": "a", "label": ["+"]})").find("the text has 0 tokens"),
            std::string::npos);
  EXPECT_EQ(refusal(R"({"input": "a#", "label": "+"})"),
            "t.jsonl:1: column 'label' must be a list with a label for each step");
  EXPECT_EQ(refusal(R"({"input": "a#", "label": []})"),
            "t.jsonl:1: column 'label' must be a list with a label for each step");
  EXPECT_EQ(refusal(R"({"input": "a#b#", "label": ["+", 1]})"),
            "t.jsonl:1: column 'label' mixes texts and numbers");
  EXPECT_EQ(refusal(R"({"input": "a#", "label": ["x"]})"),
            "t.jsonl:1: column 'label' has the label 'x', which is none of --prm.reward_tokens");
  EXPECT_EQ(refusal(R"({"input": "a#", "label": [1.5]})"),
            "t.jsonl:1: column 'label' must hold texts, booleans or numbers from 0 to 1, it has "
            "1.5");
  EXPECT_NE(refusal(R"({"input": "a#", "label": [null]})").find("it has null"), std::string::npos);
  EXPECT_NE(refusal(R"({"input": "a#"})").find("data.label_key"), std::string::npos);
  EXPECT_NE(refusal(R"({"input": 7, "label": ["+"]})").find("must be text"), std::string::npos);
  EXPECT_EQ(refusal(R"({"prompt": "p", "completions": ["a#b"], "labels": [1]})"),
            "t.jsonl:1: column 'completions' has a step with '#' in it, which marks the end of a "
            "step");
  EXPECT_EQ(refusal(R"({"prompt": "p", "completions": ["a", ""], "labels": [1, 1]})"),
            "t.jsonl:1: column 'completions' must hold texts, none of them empty");
  EXPECT_EQ(refusal(R"({"prompt": "p", "completions": "a", "labels": [1]})"),
            "t.jsonl:1: column 'completions' must be a list of steps");
  columns_.apply_chat_template = true;
  EXPECT_NE(refusal(R"({"input": "a#", "label": ["+"]})").find("the chat template has no turns"),
            std::string::npos);
  columns_.apply_chat_template = false;
  columns_.steps.rewards = {"+", "-", "0"};
  columns_.steps.reward_ids = {'+', '-', '0'};
  EXPECT_NE(refusal(R"({"input": "a#", "label": [1]})").find("give --prm.reward_tokens GOOD,BAD"),
            std::string::npos);
  columns_.steps.rewards.clear();
  columns_.steps.reward_ids.clear();
  EXPECT_NE(refusal(R"({"input": "a#", "label": ["two"]})").find("is 3 tokens"), std::string::npos);
}

}  // namespace
}  // namespace troupe::data
