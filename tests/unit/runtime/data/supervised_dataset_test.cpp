// Rows to tokens: which are learned, where answers end, and errors that name file and line. The
// tokenizer is one of bytes, so that tokens can be read as text; "<|end|>" ends an answer.
#include "runtime/data/supervised_dataset.hpp"

#include "runtime/data/prompt_dataset.hpp"
#include "tests/unit/runtime/data/chat_support.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

namespace troupe::data {
namespace {

// Leaves the thoughts of earlier turns out, as thinking models do.
constexpr const char* kThinking =
    "{% for m in messages %}[{{ m['role'] }}] "
    "{% if m['role'] == 'assistant' and loop.last %}<think></think>{% endif %}{{ m['content'] }}"
    "{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}";
constexpr const char* kDialogue =
    R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, )"
    R"({"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})"
    "\n";

class SupervisedDatasetTest : public testing::Test {
 protected:
  core::Result<SupervisedDataset> load(const std::string& name,
                                       const std::string& text,
                                       const SupervisedColumns& columns) {
    folder_.write(name, text);
    return SupervisedDataset::load((folder_.path() / name).string(), "data.dataset", columns,
                                   limits_, tokenizer_, &*chat_);
  }
  // The message with the folder cut off.
  std::string refusal(const std::string& text,
                      const SupervisedColumns& columns,
                      const std::string& name = "t.jsonl") {
    auto rows = load(name, text, columns);
    if (rows) return "accepted";
    std::string message = rows.error().message;
    const std::string prefix = folder_.path().string() + "/";
    if (const auto at = message.find(prefix); at != message.npos) message.erase(at, prefix.size());
    return message;
  }
  // Tokens as text, the end token as $.
  static std::string shown(std::span<const std::int32_t> tokens) {
    std::string out;
    for (const std::int32_t token : tokens)
      out += token == text::kEnd ? '$' : static_cast<char>(token);
    return out;
  }
  // The learned tokens, the others as dots.
  static std::string learned(const SupervisedRow& row) {
    std::string out = shown(row.answer);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (row.learn[i] == 0) out[i] = '.';
    return out;
  }
  static SupervisedColumns chat(RowKind kind) {
    SupervisedColumns columns;
    columns.kind = kind;
    columns.label_key = "label";
    columns.apply_chat_template = true;
    return columns;
  }
  static SupervisedColumns plain(RowKind kind) {
    SupervisedColumns columns;
    columns.kind = kind;
    columns.label_key = "label";
    return columns;
  }
  void use_template(const char* source) {
    chat_ = text::ChatTemplate::parse(source, {}, "test");
    ASSERT_TRUE(chat_);
  }

  text::TempFolder folder_;
  text::Tokenizer tokenizer_ = text::byte_level_tokenizer(with_end("<|end|>"));
  core::Result<text::ChatTemplate> chat_ = text::ChatTemplate::parse(kChat, {}, "test");
  SupervisedLimits limits_{.max_len = 200, .context = 256, .vocab = 257};
};

TEST_F(SupervisedDatasetTest, PlainAnswersEndWithTheEndToken) {
  auto columns = plain(RowKind::kAnswer);
  columns.input_template = "Q: {} A:";
  auto rows = load("a.csv", "input,output\n1+1,2\n\"x,y\",\"z\"\"\"\n", columns);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(shown(rows->row(0).answer), "Q: 1+1 A:2$");
  EXPECT_EQ(learned(rows->row(0)), ".........2$");
  EXPECT_EQ(shown(rows->row(1).answer), "Q: x,y A:z\"$");
  EXPECT_EQ(rows->where(1), (folder_.path() / "a.csv").string() + ":3");
}

TEST_F(SupervisedDatasetTest, TheLastAnswerOfADialogueIsLearned) {
  auto rows = load("a.jsonl", kDialogue, chat(RowKind::kAnswer));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(shown(rows->row(0).answer), "[user] a\n[assistant] b$\n[user] c\n[assistant] d$")
      << "what the template writes after the end token is left out";
  EXPECT_EQ(learned(rows->row(0)).find_first_not_of('.'), rows->row(0).answer.size() - 2);
}

TEST_F(SupervisedDatasetTest, EveryAnswerIsLearnedExactlyWithMultiturn) {
  auto columns = chat(RowKind::kAnswer);
  columns.multiturn = true;
  auto rows = load("a.jsonl", kDialogue, columns);
  ASSERT_TRUE(rows) << rows.error().message;
  std::string expected = "[user] a\n[assistant] b$\n[user] c\n[assistant] d$";
  for (char& c : expected)
    if (c != 'b' && c != 'd' && c != '$') c = '.';
  EXPECT_EQ(learned(rows->row(0)), expected);
}

TEST_F(SupervisedDatasetTest, TemplatesThatRewriteEarlierTurnsAreRefused) {
  use_template(kThinking);
  auto columns = chat(RowKind::kAnswer);
  columns.multiturn = true;
  EXPECT_EQ(
      refusal(kDialogue, columns).find("t.jsonl:1: the chat template writes turn 2 differently"),
      0u);
}

TEST_F(SupervisedDatasetTest, TextsLearnAllButTheFirstToken) {
  auto rows = load("a.jsonl", "{\"input\": \"abc\"}\n", plain(RowKind::kText));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(learned(rows->row(0)), ".bc$");
}

TEST_F(SupervisedDatasetTest, PairsShareTheirPrompt) {
  auto columns = plain(RowKind::kPair);
  columns.prompt_key = "q";
  columns.margin_key = "m";
  auto rows =
      load("a.jsonl", R"({"q": "1+1=", "chosen": "2", "rejected": "33", "m": 0.5})", columns);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(shown(rows->row(0).prompt), "1+1=");
  EXPECT_EQ(shown(rows->row(0).answer), "2$");
  EXPECT_EQ(shown(rows->row(0).rejected), "33$");
  EXPECT_EQ(rows->row(0).margin, 0.5);
  // Whole texts: what they begin with is the prompt.
  rows = load("b.jsonl", R"({"chosen": "1+1=2", "rejected": "1+1=33"})", plain(RowKind::kPair));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(shown(rows->row(0).prompt), "1+1=");
  EXPECT_EQ(shown(rows->row(0).rejected), "33$");
}

TEST_F(SupervisedDatasetTest, NeighboursWithOnePromptAreARun) {
  const auto rows = SupervisedDataset::of_tokens(std::vector<TokenRow>{
      {{1}, {2}, {3}}, {{1}, {2}, {4}}, {{1}, {5}, {6}}, {{1, 2}, {2}, {3}}, {{1}, {2}, {7}}});
  using Runs = std::vector<std::uint64_t>;
  EXPECT_EQ(rows.prompt_runs(8), (Runs{0, 3, 4}));
  EXPECT_EQ(rows.prompt_runs(2), (Runs{0, 2, 3, 4}));
  EXPECT_EQ(rows.prompt_runs(1), (Runs{0, 1, 2, 3, 4}));
}

TEST_F(SupervisedDatasetTest, DialoguePairsDifferInTheLastTurn) {
  const std::string user = R"([{"role": "user", "content": "a"}, )";
  const std::string row = R"({"chosen": )" + user + R"({"role": "assistant", "content": "b"}], )" +
                          R"("rejected": )" + user + R"({"role": "assistant", "content": "c"}]})";
  auto rows = load("a.jsonl", row, chat(RowKind::kPair));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(shown(rows->row(0).prompt), "[user] a\n[assistant] ");
  EXPECT_EQ(shown(rows->row(0).answer), "b$");
  EXPECT_EQ(shown(rows->row(0).rejected), "c$");
}

TEST_F(SupervisedDatasetTest, RatedAnswersHaveALabel) {
  const auto columns = plain(RowKind::kRated);
  auto rows = load("a.csv", "input,output,label\nq,a,true\nq,b,0\n", columns);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_TRUE(rows->row(0).desirable);
  EXPECT_FALSE(rows->row(1).desirable);
  EXPECT_EQ(refusal(R"({"input": "q", "output": "a", "label": 3})", columns),
            "t.jsonl:1: column 'label' must be true or false (or 1 or 0), it is 3");
}

// docs/data_formats.md: rows of a table "| methods | format | `row` |".
TEST_F(SupervisedDatasetTest, EachRowOfThePageOfFormatsIsRead) {
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream page(std::string(source == nullptr ? "." : source) + "/docs/data_formats.md");
  const std::map<std::string, RowKind> kinds = {
      {"sft", RowKind::kAnswer}, {"distill", RowKind::kAnswer}, {"pretrain", RowKind::kText},
      {"rm", RowKind::kPair},    {"dpo", RowKind::kPair},       {"kto", RowKind::kRated},
      {"prm", RowKind::kSteps}};
  std::map<std::string, int> seen;
  for (std::string line; std::getline(page, line);) {
    const auto begin = line.find("| `{"), end = line.rfind("` |");
    if (begin == line.npos || end == line.npos) continue;
    const std::string row = line.substr(begin + 3, end - begin - 3);
    const std::string methods = line.substr(0, line.find('|', 2)) + ",";
    for (const auto& [method, kind] : kinds) {
      if (methods.find(" " + method + ",") == methods.npos &&
          methods.find(" " + method + " ,") == methods.npos)
        continue;
      ++seen[method];
      auto columns = plain(kind);
      if (kind == RowKind::kSteps) columns.steps = {"#", '#', {"+", "-"}, {'+', '-'}, "\n"};
      EXPECT_EQ(refusal(row, columns), "accepted") << method << ": " << row;
    }
    if (methods.find(" ppo ") == methods.npos) continue;
    ++seen["ppo"];
    folder_.write("p.jsonl", row);
    const auto rows = load_prompts((folder_.path() / "p.jsonl").string(), {});
    ASSERT_TRUE(rows) << row << rows.error().message;
    const PromptRow& first = rows->front();
    const std::string prompt =
        first.messages.empty() ? first.prompt : first.messages.back().content;
    EXPECT_TRUE(prompt == "2+3=" || prompt == "Add.\n2+3") << prompt;
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"sft", 8},
                                              {"distill", 7},
                                              {"pretrain", 2},
                                              {"rm", 6},
                                              {"dpo", 6},
                                              {"kto", 3},
                                              {"prm", 2},
                                              {"ppo", 6}}));
}

TEST_F(SupervisedDatasetTest, BadRowsAreNamed) {
  const auto answer = plain(RowKind::kAnswer), pair = plain(RowKind::kPair);
  EXPECT_EQ(refusal("{\"input\": \"q\", \"answer\": \"a\"}\n", answer),
            "t.jsonl:1: no column 'output'; set --data.output_key to one of: input, answer");
  EXPECT_EQ(refusal("\n{\"chosen\": \"ab\", \"rejected\": \"ab\"}\n", pair),
            "t.jsonl:2: 'chosen' and 'rejected' are equal: there is nothing to prefer; leave the "
            "row out");
  EXPECT_EQ(refusal("", answer).find("dataset "), 0u);
  EXPECT_NE(refusal("", answer).find("holds no rows"), std::string::npos);
  EXPECT_EQ(refusal("{\"input\": \"q\", \"output\": \"\"}\n", answer),
            "t.jsonl:1: column 'output' is empty");
  limits_.vocab = 100;
  EXPECT_EQ(refusal("{\"input\": \"q\", \"output\": \"a\"}\n", answer),
            "t.jsonl:1: token id 113 is outside the vocabulary of 100: the tokenizer does not "
            "belong to this model");
}

TEST_F(SupervisedDatasetTest, LongRowsAreAnErrorOrCounted) {
  limits_.max_len = 4;
  const std::string text =
      "{\"input\": \"q\", \"output\": \"abc\"}\n{\"input\": \"q\", \"output\": \"ab\"}\n";
  EXPECT_EQ(refusal(text, plain(RowKind::kAnswer)),
            "t.jsonl:1: 5 tokens, more than --data.max_len 4; shorten it, or leave such rows out "
            "with --data.drop_too_long true");
  limits_.drop_too_long = true;
  auto rows = load("a.jsonl", text, plain(RowKind::kAnswer));
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->dropped(), 1u);
  EXPECT_EQ(rows->where(0), (folder_.path() / "a.jsonl").string() + ":2");
}

TEST_F(SupervisedDatasetTest, FilesFollowEachOtherUpToMaxSamples) {
  folder_.write("a.jsonl", "{\"input\": \"q\", \"output\": \"1\"}\n");
  folder_.write("b.json", R"([{"input": "q", "output": "2"}, {"input": "q", "output": "3"}])");
  const std::string files =
      (folder_.path() / "a.jsonl").string() + "," + (folder_.path() / "b.json").string();
  limits_.max_samples = 2;
  auto rows = SupervisedDataset::load(files, "data.dataset", plain(RowKind::kAnswer), limits_,
                                      tokenizer_, nullptr);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->set_rows(), (std::vector<std::uint64_t>{1, 1}));
  EXPECT_EQ(shown(rows->row(1).answer), "q2$");
  EXPECT_EQ(rows->where(1), (folder_.path() / "b.json").string() + " item 1");
}

}  // namespace
}  // namespace troupe::data
