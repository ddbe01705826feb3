// Rows that are known by their columns: lists of messages, ShareGPT and Alpaca, as answers, pairs,
// rated answers and prompts. The tokenizer is one of bytes, so that tokens can be read as text.
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "tests/unit/runtime/data/chat_support.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

constexpr const char* kShareGpt =
    R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}, )"
    R"({"from": "human", "value": "c"}, {"from": "gpt", "value": "d"}], "system": "s"})";
constexpr const char* kSame =
    R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, )"
    R"({"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, )"
    R"({"role": "assistant", "content": "d"}]})";
constexpr const char* kAlpaca =
    R"({"instruction": "add", "input": "1+1", "output": "2", "system": "s", )"
    R"("history": [["a", "b"], ["c", "d"]]})";

class RowFormats : public testing::Test {
 protected:
  static SupervisedColumns of(RowKind kind) {
    SupervisedColumns columns;
    columns.kind = kind;
    columns.label_key = "label";
    return columns;
  }
  std::string cut(std::string message) const {
    const std::string prefix = folder_.path().string() + "/";
    for (auto at = message.find(prefix); at != message.npos; at = message.find(prefix))
      message.erase(at, prefix.size());
    return message;
  }
  core::Result<SupervisedDataset> load(const std::string& text, const SupervisedColumns& columns) {
    folder_.write("t.jsonl", text);
    return SupervisedDataset::load((folder_.path() / "t.jsonl").string(), "data.dataset", columns,
                                   limits_, tokenizer_, &*chat_);
  }
  std::string refusal(const std::string& text, const SupervisedColumns& columns) {
    const auto rows = load(text, columns);
    return rows ? "accepted" : cut(rows.error().message);
  }
  // Prompt, "|" and answers of one row, the end token as $.
  std::string shown(const std::string& text, const SupervisedColumns& columns) {
    const auto rows = load(text, columns);
    if (!rows) return cut(rows.error().message);
    const SupervisedRow row = rows->row(0);
    std::string out = tokens(row.prompt);
    if (!row.learn.empty()) {
      for (std::size_t i = 0; i < row.answer.size(); ++i) {
        if (row.learn[i] != 0 && (i == 0 || row.learn[i - 1] == 0)) out += '|';
        out += tokens(row.answer.subspan(i, 1));
      }
      return out;
    }
    out += "|" + tokens(row.answer);
    return row.rejected.empty() ? out : out + "|" + tokens(row.rejected);
  }
  static std::string tokens(std::span<const std::int32_t> ids) {
    std::string out;
    for (const std::int32_t id : ids)
      out += id == text::kEnd ? '$' : static_cast<char>(id);
    return out;
  }
  std::vector<std::string> notes(const std::string& text, const SupervisedColumns& columns) {
    const auto rows = load(text, columns);
    if (!rows) return {rows.error().message};
    std::vector<std::string> out;
    for (const std::string& note : rows->notes())
      out.push_back(cut(note));
    return out;
  }
  // A prompt as its turns, or as its text.
  std::string prompt(const std::string& text, const DatasetColumns& columns) {
    folder_.write("p.jsonl", text);
    const auto rows = load_prompts((folder_.path() / "p.jsonl").string(), columns);
    if (!rows) return cut(rows.error().message);
    std::string out = rows->front().prompt;
    for (const ChatMessage& turn : rows->front().messages)
      out += turn.role + "=" + turn.content + ";";
    return out;
  }

  text::TempFolder folder_;
  text::Tokenizer tokenizer_ = text::byte_level_tokenizer(with_end("<|end|>"));
  core::Result<text::ChatTemplate> chat_ = text::ChatTemplate::parse(kChat, {}, "test");
  SupervisedLimits limits_{.max_len = 200, .context = 256, .vocab = 257};
};

TEST_F(RowFormats, MessagesNeedNoFlag) {
  const std::string whole = "[system] s\n[user] a\n[assistant] b$\n[user] c\n[assistant] |d$";
  EXPECT_EQ(shown(kSame, of(RowKind::kAnswer)), whole);
  auto flagged = of(RowKind::kAnswer);
  flagged.apply_chat_template = true;
  EXPECT_EQ(shown(kSame, flagged), whole);
  const std::string twice = std::string(kSame) + "\n" + kSame;
  EXPECT_EQ(notes(twice, of(RowKind::kAnswer)),
            std::vector<std::string>{
                "t.jsonl:1: rows of messages; the chat template is applied, as with "
                "--data.apply_chat_template true; the last answer is learned (all of them: "
                "--data.multiturn true)"});
  EXPECT_TRUE(notes(kSame, flagged).empty()) << "the flag says so already";
}

TEST_F(RowFormats, ShareGptIsReadAsItsMessages) {
  for (const bool every_turn : {false, true}) {
    auto columns = of(RowKind::kAnswer);
    columns.multiturn = every_turn;
    EXPECT_EQ(shown(kShareGpt, columns), shown(kSame, columns));
    EXPECT_EQ(shown(kShareGpt, columns),
              every_turn ? "[system] s\n[user] a\n[assistant] |b$\n[user] c\n[assistant] |d$"
                         : "[system] s\n[user] a\n[assistant] b$\n[user] c\n[assistant] |d$");
  }
  const auto said =
      notes(std::string(kShareGpt) + "\n" + kAlpaca + "\n" + kShareGpt, of(RowKind::kAnswer));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].find("t.jsonl:1: ShareGPT rows"), 0u);
  EXPECT_EQ(said[1].find("t.jsonl:2: Alpaca rows (`input` follows `instruction` on a new line)"),
            0u);
  // What a tool said is a turn of its own; the names of the roles may be a chat template's.
  EXPECT_EQ(shown(R"({"conversations": [{"from": "user", "value": "a"}, )"
                  R"({"from": "observation", "value": "7"}, {"from": "assistant", "value": "b"}]})",
                  of(RowKind::kAnswer)),
            "[user] a\n[tool] 7\n[assistant] |b$");
}

TEST_F(RowFormats, AlpacaIsADialogueWithItsInputOnANewLine) {
  EXPECT_EQ(shown(kAlpaca, of(RowKind::kAnswer)),
            "[system] s\n[user] a\n[assistant] b$\n[user] c\n[assistant] d$\n[user] add\n1+1\n"
            "[assistant] |2$");
  const std::string bare = R"({"instruction": "add", "input": "", "output": "2"})";
  EXPECT_EQ(shown(bare, of(RowKind::kAnswer)), "[user] add\n[assistant] |2$");
  // Also where the setting names the instruction: its input is not lost.
  auto named = of(RowKind::kAnswer);
  named.input_key = "instruction";
  EXPECT_EQ(shown(R"({"instruction": "add", "input": "1", "output": "2"})", named),
            "[user] add\n1\n[assistant] |2$");
  // Another column that the setting names counts before the format.
  named.input_key = "question";
  EXPECT_EQ(shown(R"({"question": "q", "instruction": "x", "output": "2"})", named), "q|2$");
  auto plain = of(RowKind::kAnswer);
  plain.input_template = "<{}>";
  EXPECT_EQ(shown(R"({"instruction": "add", "input": "1", "output": "2"})", plain), "<add\n1>|2$");
  EXPECT_NE(refusal(kAlpaca, plain).find("t.jsonl:1: its system text, earlier turns or tools"),
            std::string::npos);
}

// As generate --data leaves such rows: the sampled answer counts, not the row's own.
TEST_F(RowFormats, AnAnswerColumnThatIsNamedStandsForTheRowsOwn) {
  auto sampled = of(RowKind::kAnswer);
  sampled.input_key = "prompt";
  sampled.output_key = "response";
  EXPECT_EQ(shown(R"({"conversations": [{"from": "human", "value": "a"}, )"
                  R"({"from": "gpt", "value": "b"}], "response": "new"})",
                  sampled),
            "[user] a\n[assistant] |new$");
  EXPECT_EQ(shown(R"({"instruction": "a", "output": "b", "response": "new"})", sampled),
            "[user] a\n[assistant] |new$");
  EXPECT_EQ(shown(R"({"instruction": "a", "output": "b"})", sampled), "[user] a\n[assistant] |b$");
}

TEST_F(RowFormats, PairsOfAllFormats) {
  const auto pair = of(RowKind::kPair);
  const std::string expected = "[user] a\n[assistant] |b$|c$";
  for (const char* row : {
           R"({"conversations": [{"from": "human", "value": "a"}], )"
           R"("chosen": {"from": "gpt", "value": "b"}, "rejected": {"from": "gpt", "value": "c"}})",
           R"({"instruction": "a", "chosen": "b", "rejected": "c"})",
           R"({"prompt": [{"role": "user", "content": "a"}], )"
           R"("chosen": [{"role": "assistant", "content": "b"}], )"
           R"("rejected": [{"role": "assistant", "content": "c"}]})",
           R"({"prompt": "a", "chosen": [{"role": "assistant", "content": "b"}], )"
           R"("rejected": [{"role": "assistant", "content": "c"}]})",
           R"({"prompt": "a", "chosen": [{"role": "user", "content": "a"}, )"
           R"({"role": "assistant", "content": "b"}], "rejected": )"
           R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "c"}]})",
       }) {
    EXPECT_EQ(shown(row, pair), expected) << row;
  }
  // Texts: `prompt` is the prompt, unless both answers begin with it.
  const std::string texts = R"({"prompt": "q ", "chosen": "say b", "rejected": "say c"})";
  EXPECT_EQ(shown(texts, pair), "q |say b$|say c$");
  EXPECT_EQ(notes(texts, pair),
            std::vector<std::string>{"t.jsonl:1: column 'prompt' is the prompt of 'chosen' and "
                                     "'rejected'"});
  EXPECT_EQ(shown(R"({"prompt": "q", "chosen": "qb", "rejected": "qc"})", pair), "q|b$|c$");
  auto margin = pair;
  margin.margin_key = "m";
  const auto rows = load(R"({"instruction": "a", "chosen": "b", "rejected": "c", "m": 2})", margin);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->row(0).margin, 2);
}

TEST_F(RowFormats, RatedAnswers) {
  EXPECT_EQ(shown(R"({"instruction": "a", "output": "b", "label": true})", of(RowKind::kRated)),
            "[user] a\n[assistant] |b$");
}

TEST_F(RowFormats, PromptsLeaveTheAnswerAway) {
  const std::string turns = "system=s;user=a;assistant=b;user=c;";
  EXPECT_EQ(prompt(kShareGpt, {}), turns);
  EXPECT_EQ(prompt(kSame, {}), turns);
  EXPECT_EQ(prompt(kAlpaca, {}), "system=s;user=a;assistant=b;user=c;assistant=d;user=add\n1+1;");
  EXPECT_EQ(prompt(R"({"instruction": "add", "input": "1"})", {.input_template = "<{}>"}),
            "<add\n1>");
  EXPECT_EQ(prompt(R"({"prompt": [{"role": "user", "content": "a"}]})", {.input_key = "prompt"}),
            "user=a;");
  EXPECT_NE(prompt(R"({"instruction": "a", "text": "b"})", {.known_formats = false})
                .find("no column 'input'"),
            std::string::npos);
  // The label and the columns stay those of the row.
  folder_.write("p.jsonl", R"({"instruction": "a", "output": "7"})");
  const DatasetColumns columns{.label_key = "output"};
  const auto rows = load_prompts((folder_.path() / "p.jsonl").string(), columns);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->front().label, "7");
  const auto said = prompt_notes(*rows, columns);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("Alpaca rows"), std::string::npos);
  // A reward model reads the same turns from the row that goes with a sample.
  const auto again = chat_of_row(rows->front().columns_json, columns);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->messages.size(), 1u);
  EXPECT_EQ(again->messages.front().content, "a");
  EXPECT_TRUE(chat_of_row(R"({"input": "text"})", {})->messages.empty());
}

TEST_F(RowFormats, MalformedRowsAreNamedWithRowColumnAndRemedy) {
  const auto answer = of(RowKind::kAnswer), pair = of(RowKind::kPair);
  EXPECT_EQ(refusal("\n"
                    R"({"conversations": [{"from": "robot", "value": "a"}]})",
                    answer),
            "t.jsonl:2: column 'conversations', turn 1 is from 'robot'; read are human or user, "
            "gpt or assistant, system, tool or observation, and function_call");
  EXPECT_EQ(
      refusal(R"({"conversations": [{"from": "human"}]})", answer),
      "t.jsonl:1: column 'conversations', turn 1 must be an object with a role; a message is "
      "{\"role\": ..., \"content\": ...}, or {\"from\": ..., \"value\": ...} as ShareGPT has it");
  EXPECT_EQ(refusal(R"({"conversations": []})", answer),
            "t.jsonl:1: column 'conversations': the list of messages is empty");
  EXPECT_EQ(refusal(R"({"conversations": [{"from": "human", "value": "a"}]})", answer),
            "t.jsonl:1: column 'conversations' must end with the assistant's turn (gpt), it is "
            "what the model learns");
  EXPECT_NE(refusal(R"({"conversations": [{"from": "human", "value": "a"}, )"
                    R"({"from": "gpt", "value": "b"}], "tools": "[{}]"})",
                    answer)
                .find("t.jsonl:1: column 'tools' must be a list of tools"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"conversations": [{"from": "system", "value": "a"}, )"
                    R"({"from": "human", "value": "b"}, {"from": "gpt", "value": "c"}], )"
                    R"("system": "d"})",
                    answer)
                .find("t.jsonl:1: a system text in column 'system' and another"),
            std::string::npos);
  EXPECT_EQ(refusal(R"({"instruction": "a", "input": 3, "output": "b"})", answer),
            "t.jsonl:1: column 'input' must be text");
  EXPECT_EQ(refusal(R"({"instruction": "a", "response": "b"})", answer),
            "t.jsonl:1: an Alpaca row without text in column 'output', which is the answer");
  EXPECT_EQ(refusal(R"({"instruction": "a", "output": "b", "history": [["c"]]})", answer),
            "t.jsonl:1: column 'history' must be a list of pairs of texts, a question and its "
            "answer each");
  EXPECT_EQ(refusal(R"({"instruction": "", "input": "", "output": "b"})", answer),
            "t.jsonl:1: columns 'instruction' and 'input' are empty");
  EXPECT_NE(refusal(R"({"instruction": "a", "chosen": "b"})", pair)
                .find("t.jsonl:1: no column 'rejected' (there is: instruction, chosen)"),
            std::string::npos);
  EXPECT_NE(refusal(kShareGpt, pair).find("t.jsonl:1: no column 'chosen'"), std::string::npos);
  auto plain = answer;
  plain.input_template = "Q: {}";
  EXPECT_NE(refusal(kSame, plain).find("--data.input_template has no place"), std::string::npos);
}

}  // namespace
}  // namespace troupe::data
