// What a row holds beside roles and texts reaches the template and the marks of what is learned, in
// every kind of row; plain text has the tokenizer's own ids. The tokenizer is one of bytes, so that
// tokens can be read as text.
#include "runtime/data/answer_end.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "tests/unit/runtime/data/chat_support.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::data {
namespace {

// Prints tools, a variable, names, reasoning and calls.
constexpr const char* kToolChat =
    "{% if tools %}T{{ tools | tojson }}\n{% endif %}{% if lang %}L{{ lang }}\n{% endif %}"
    "{% for m in messages %}[{{ m.role }}{{ ':' + m.name if m.name }}] "
    "{{ '<' + m.reasoning_content + '>' if m.reasoning_content }}{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}!{{ c.function.name }}{{ c.function.arguments | tojson }}"
    "{% endfor %}{{ '<|end|>' if m.role == 'assistant' }}\n{% endfor %}"
    "{{ '[assistant] ' if add_generation_prompt }}";

constexpr const char* kCall =
    R"({"role": "assistant", "content": null, "tool_calls": [{"type": "function", "function": )"
    R"({"name": "add", "arguments": "{\"a\":3}"}}]})";
constexpr const char* kTools =
    R"("tools": [{"name": "add"}], "chat_template_kwargs": {"lang": "de"})";

class WholeMessages : public testing::Test {
 protected:
  explicit WholeMessages(const char* source = kToolChat)
      : chat_(text::ChatTemplate::parse(source, {}, "test")) {}

  static SupervisedColumns of(RowKind kind, bool every_turn = false) {
    SupervisedColumns columns;
    columns.kind = kind;
    columns.label_key = "label";
    columns.multiturn = every_turn;
    return columns;
  }
  core::Result<SupervisedDataset> load(const std::string& row, const SupervisedColumns& columns) {
    folder_.write("t.jsonl", row);
    return SupervisedDataset::load((folder_.path() / "t.jsonl").string(), "data.dataset", columns,
                                   {.max_len = 900, .context = 900, .vocab = 300}, tokenizer_,
                                   &*chat_);
  }
  // The tokens as text, $ the end, ^ what stands in front; what is learned in parentheses.
  static std::string shown(std::span<const std::int32_t> ids,
                           std::span<const std::uint8_t> learn = {}) {
    std::string out;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool now = !learn.empty() && learn[i] != 0,
                 before = i > 0 && !learn.empty() && learn[i - 1] != 0;
      if (now != before) out += now ? '(' : ')';
      out += ids[i] == text::kEnd ? '$' : ids[i] == 257 ? '^' : static_cast<char>(ids[i]);
    }
    return !learn.empty() && learn.back() != 0 ? out + ')' : out;
  }
  std::string row(const std::string& text, const SupervisedColumns& columns) {
    const auto rows = load(text, columns);
    if (!rows) return rows.error().message.substr(rows.error().message.find("t.jsonl"));
    const SupervisedRow one = rows->row(0);
    if (!one.learn.empty()) return shown(one.answer, one.learn);
    return shown(one.prompt) + "|" + shown(one.answer) +
           (one.rejected.empty() ? "" : "|" + shown(one.rejected));
  }
  core::ErrorCode code(const std::string& text, const SupervisedColumns& columns) {
    const auto rows = load(text, columns);
    return rows ? core::ErrorCode::kInternal : rows.error().code;
  }

  text::TempFolder folder_;
  text::Tokenizer tokenizer_ = text::byte_level_tokenizer(with_end("<|end|>"));
  core::Result<text::ChatTemplate> chat_;
};

TEST_F(WholeMessages, CallsToolsAndVariablesAreInTheTextAndCallsAreLearned) {
  const std::string head = "T[{\"name\": \"add\"}]\nLde\n";
  const std::string before = head + "[user] q\n[assistant] ";
  const std::string dialogue =
      std::string(R"({"messages": [{"role": "user", "content": "q"}, )") + kCall +
      R"(, {"role": "tool", "content": "3", "name": "add"}, )"
      R"({"role": "assistant", "content": "3", "reasoning_content": "hm"}], )" +
      kTools + "}";
  EXPECT_EQ(row(dialogue, of(RowKind::kAnswer)),
            before + "!add{\"a\": 3}$\n[tool:add] 3\n[assistant] (<hm>3$)");
  EXPECT_EQ(row(dialogue, of(RowKind::kAnswer, true)),
            before + "(!add{\"a\": 3}$)\n[tool:add] 3\n[assistant] (<hm>3$)");
  // The last answer may be a call.
  EXPECT_EQ(row(std::string(R"({"messages": [{"role": "user", "content": "q"}, )") + kCall + "], " +
                    kTools + "}",
                of(RowKind::kAnswer)),
            before + "(!add{\"a\": 3}$)");
  const std::string asked = R"({"prompt": [{"role": "user", "content": "q"}], )";
  EXPECT_EQ(row(asked + R"("chosen": [)" + kCall +
                    R"(], "rejected": [{"role": "assistant", "content": "x"}], )" + kTools + "}",
                of(RowKind::kPair)),
            before + "|!add{\"a\": 3}$|x$");
  auto rated = of(RowKind::kRated);
  rated.input_key = "prompt";
  EXPECT_EQ(row(asked + R"("output": [)" + kCall + R"(], "label": true, )" + kTools + "}", rated),
            before + "|!add{\"a\": 3}$");
}

TEST_F(WholeMessages, PromptsHaveThemAndGiveThemAgain) {
  const std::string text = std::string(R"({"messages": [{"role": "user", "content": "q"}, )") +
                           kCall +
                           R"(, {"role": "tool", "content": "3"}, )"
                           R"({"role": "assistant", "content": "3"}], )" +
                           kTools + "}";
  folder_.write("p.jsonl", text);
  const auto rows = load_prompts((folder_.path() / "p.jsonl").string(), {});
  ASSERT_TRUE(rows) << rows.error().message;
  const PromptRow& prompt = rows->front();
  EXPECT_EQ(*chat_->render(prompt.messages, text::RenderOptions::with(prompt.inputs, true)),
            "T[{\"name\": \"add\"}]\nLde\n[user] q\n[assistant] !add{\"a\": 3}<|end|>\n[tool] 3\n"
            "[assistant] ");
  const auto again = chat_of_row(prompt.columns_json, {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->messages, prompt.messages);
  EXPECT_EQ(again->inputs, prompt.inputs);
  EXPECT_EQ(inputs_of_row(prompt.columns_json), prompt.inputs);
}

TEST_F(WholeMessages, ShareGptBringsToolsAndCalls) {
  EXPECT_EQ(
      row(R"({"conversations": [{"from": "human", "value": "q"}, )"
          R"({"from": "function_call", "value": "{\"name\": \"add\", \"arguments\": {\"a\": 3}}"}, )"
          R"({"from": "observation", "value": "3"}, {"from": "gpt", "value": "3"}], )"
          R"("tools": "[{\"name\": \"add\"}]"})",
          of(RowKind::kAnswer, true)),
      "T[{\"type\": \"function\", \"function\": {\"name\": \"add\"}}]\n[user] q\n"
      "[assistant] (!add{\"a\": 3}$)\n[tool] 3\n[assistant] (3$)");
}

TEST_F(WholeMessages, AWeightOf0IsNotLearned) {
  const auto dialogue = [](const char* first, const char* last) {
    return std::string(R"({"messages": [{"role": "user", "content": "a"}, )") +
           R"({"role": "assistant", "content": "b")" + first +
           R"(}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d")" + last +
           "}]}";
  };
  const auto every = of(RowKind::kAnswer, true), last = of(RowKind::kAnswer);
  EXPECT_EQ(row(dialogue(R"(, "weight": 0)", ""), every),
            "[user] a\n[assistant] b$\n[user] c\n[assistant] (d$)");
  EXPECT_EQ(row(dialogue(R"(, "weight": 1)", R"(, "weight": 0)"), every),
            "[user] a\n[assistant] (b$)");
  EXPECT_EQ(row(dialogue("", R"(, "weight": 0)"), last),
            "t.jsonl:1: the last answer has a weight of 0, so that nothing of the row is learned; "
            "leave it out, or learn the other answers (--data.multiturn true)");
  EXPECT_EQ(row(dialogue(R"(, "weight": 0)", R"(, "weight": 0)"), every),
            "t.jsonl:1: every answer has a weight of 0, so that nothing of the row is learned; "
            "leave it out");
  EXPECT_EQ(row(R"({"messages": [{"role": "user", "content": "a", "weight": 1}, )"
                R"({"role": "assistant", "content": "b"}]})",
                every),
            "t.jsonl:1: turn 1 has a weight of 1 and is from 'user'; only turns of the assistant "
            "are learned");
  EXPECT_EQ(row(R"({"prompt": [{"role": "user", "content": "a"}], "rejected": "c", )"
                R"("chosen": [{"role": "assistant", "content": "b", "weight": 0}]})",
                of(RowKind::kPair)),
            "t.jsonl:1: the answer has a weight of 0, so that nothing of the row is learned; leave "
            "it out");
}

TEST_F(WholeMessages, TextHasNoPlaceForTools) {
  const std::string tools = std::string(", ") + kTools + "}";
  const std::string why =
      "t.jsonl:1: column 'tools' is for the chat template, and a text prompt does not go through "
      "it";
  EXPECT_EQ(row(R"({"input": "a", "output": "b")" + tools, of(RowKind::kAnswer)).find(why), 0u);
  EXPECT_EQ(row(R"({"prompt": "a", "chosen": "b", "rejected": "c")" + tools, of(RowKind::kPair))
                .find(why),
            0u);
  EXPECT_EQ(row(R"({"input": "a", "output": "b", "tools": "hammer, nails"})", of(RowKind::kAnswer)),
            "a(b$)")
      << "another column of that name";
}

TEST_F(WholeMessages, PlainTextBeginsAsTheTokenizerHasIt) {
  const auto framed =
      text::Tokenizer::parse(text::framed_byte_level_json().dump(), with_end("<|end|>"), "framed");
  ASSERT_TRUE(framed) << framed.error().message;
  tokenizer_ = *framed;
  for (const bool front : {true, false}) {
    const std::string bos = front ? "^" : "";
    const auto kind = [&](RowKind which) {
      auto columns = of(which);
      columns.add_special_tokens = front;
      return columns;
    };
    EXPECT_EQ(row(R"({"input": "2+2=", "output": "4"})", kind(RowKind::kAnswer)), bos + "2+2=(4$)");
    EXPECT_EQ(row(R"({"input": "2+2=4"})", kind(RowKind::kText)), front ? "^(2+2=4$)" : "2(+2=4$)");
    EXPECT_EQ(row(R"({"prompt": "q", "chosen": "b", "rejected": "c"})", kind(RowKind::kPair)),
              bos + "q|b$|c$");
    EXPECT_EQ(row(R"({"chosen": "qb", "rejected": "qc"})", kind(RowKind::kPair)), bos + "q|b$|c$");
    EXPECT_NE(row(R"({"chosen": "b", "rejected": "c"})", kind(RowKind::kPair)).find("in common"),
              std::string::npos);
    EXPECT_EQ(row(R"({"messages": [{"role": "user", "content": "a"}, )"
                  R"({"role": "assistant", "content": "b"}]})",
                  kind(RowKind::kAnswer)),
              "[user] a\n[assistant] (b$)")
        << "a template writes its own";
  }
}

// A template that wants a turn of the user in every dialogue, and before the header of an answer.
class StrictChat : public WholeMessages {
 protected:
  StrictChat()
      : WholeMessages(
            "{%- if not messages|selectattr('role', 'equalto', 'user')|list %}"
            "{{ raise_exception('No user query found in messages.') }}{%- endif %}"
            "{%- if add_generation_prompt and messages[-1].role != 'user' %}"
            "{{ raise_exception('The user speaks before an answer.') }}{%- endif %}"
            "{% for m in messages %}[{{ m.role }}] {{ '~' if m.role == 'assistant' }}{{ m.content "
            "| trim }}"
            "{{ '<|end|>' if m.role == 'assistant' }}\n{% endfor %}"
            "{{ '[assistant] ' if add_generation_prompt }}") {}
};

TEST_F(StrictChat, AnswersAreFoundInTheWholeWhereBeginningsDoNotRender) {
  const std::string row_of_system =
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "assistant", "content": "hello"}, )"
      R"({"role": "user", "content": "q"}, {"role": "assistant", "content": " a "}]})";
  EXPECT_EQ(row(row_of_system, of(RowKind::kAnswer, true)),
            "[system] s\n[assistant] (~hello$)\n[user] q\n[assistant] (~a$)");
  EXPECT_EQ(row(row_of_system, of(RowKind::kAnswer)),
            "[system] s\n[assistant] ~hello$\n[user] q\n[assistant] (~a$)");
  // An answer behind an answer, and behind a tool's message.
  for (const bool every : {false, true}) {
    EXPECT_EQ(
        row(R"({"messages": [{"role": "user", "content": "q"}, )"
            R"({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "a"}]})",
            of(RowKind::kAnswer, every)),
        every ? "[user] q\n[assistant] (~a$)\n[assistant] (~a$)"
              : "[user] q\n[assistant] ~a$\n[assistant] (~a$)");
    EXPECT_EQ(
        row(R"({"messages": [{"role": "user", "content": "q"}, {"role": "tool", "content": "3"}, )"
            R"({"role": "assistant", "content": "3"}]})",
            of(RowKind::kAnswer, every)),
        "[user] q\n[tool] 3\n[assistant] (~3$)");
  }
  EXPECT_EQ(
      row(R"({"prompt": [{"role": "user", "content": "q"}, {"role": "tool", "content": "3"}], )"
          R"("chosen": "b", "rejected": "c"})",
          of(RowKind::kPair)),
      "[user] q\n[tool] 3\n[assistant] |~b$|~c$");
}

TEST_F(StrictChat, ARowThatDoesNotRenderIsTheRowsFault) {
  const std::string none =
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}]})";
  EXPECT_EQ(code(none, of(RowKind::kAnswer)), core::ErrorCode::kData);
  EXPECT_NE(row(none, of(RowKind::kAnswer))
                .find("t.jsonl:1: test: the chat template refuses these "
                      "messages: No user query found"),
            std::string::npos);
}

// Refuses a dialogue that ends with a tool's message, and hides what other answers say.
class HidingChat : public WholeMessages {
 protected:
  HidingChat()
      : WholeMessages(
            "{% if messages[-1].role == 'tool' %}{{ raise_exception('no') }}{% endif %}"
            "{% for m in messages %}[{{ m.role }}] {{ 'same' }}\n{% endfor %}") {}
};

TEST_F(HidingChat, AnAnswerThatCannotBeFoundIsNamedWithItsTurn) {
  const std::string message =
      row(R"({"messages": [{"role": "user", "content": "q"}, {"role": "tool", "content": "3"}, )"
          R"({"role": "assistant", "content": "x"}]})",
          of(RowKind::kAnswer));
  EXPECT_EQ(message,
            "t.jsonl:1: turn 3, the assistant's: the dialogue up to turn 2 does not go through the "
            "chat template, and in the whole the answer's tokens cannot be told apart (its words "
            "are not found in the rendered dialogue): test: the chat template refuses these "
            "messages: no");
}

TEST_F(WholeMessages, ATemplateThatOpensTheThinkingSaysWhatHelps) {
  chat_ = text::ChatTemplate::parse(
      "{% for m in messages %}[{{ m.role }}] {{ m.content.split('</think>')[-1] }}<|end|>{% endfor "
      "%}"
      "{{ '[assistant] <think>' if add_generation_prompt }}",
      {}, "test");
  const std::string dialogue =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
  const std::string message = row(dialogue, of(RowKind::kAnswer));
  EXPECT_EQ(
      message.find("t.jsonl:1: the chat template writes turn 2 in another way than its prompt"), 0u)
      << message;
  EXPECT_EQ(message.find("multiturn"), std::string::npos) << "it is off already";
}

TEST_F(WholeMessages, ATurnsEndThatIsNoEndTokenIsSaid) {
  const std::vector<std::int32_t> other = {257}, own = {257, text::kEnd};
  const auto note = answer_end_note(tokenizer_, *chat_, other);
  ASSERT_TRUE(note);
  EXPECT_EQ(
      *note,
      "the chat template ends an answer with <|end|>, which is none of the model's end tokens "
      "(token 257), so responses continue after it; add its id 256 to eos_token_id in the "
      "generation_config.json of the model folder");
  EXPECT_FALSE(answer_end_note(tokenizer_, *chat_, own));
  const auto bare = text::ChatTemplate::parse("{{ messages[-1].content }}\n", {}, "test");
  EXPECT_FALSE(answer_end_note(tokenizer_, *bare, other)) << "it ends with nothing";
}

}  // namespace
}  // namespace troupe::data
