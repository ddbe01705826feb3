#include "runtime/sessions/history.hpp"

#include "apps/cli/byte_tokenizer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace troupe::sessions {
namespace {

using dialects::GenerateRequest;
using Json = nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kEnd = 256;

std::string read_template(const std::string& name) {
  std::ifstream in(std::string(std::getenv("TROUPE_SOURCE_DIR")) + "/tests/data/templates/" + name);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A model whose tokens are bytes, but for the one that ends a turn.
dialects::ServedModel model_with(const std::string& source, const std::string& end) {
  std::string tokenizer = cli::byte_tokenizer().dump();
  for (std::size_t at = 0; (at = tokenizer.find("<|end|>", at)) != tokenizer.npos; at += end.size())
    tokenizer.replace(at, 7, end);
  text::SpecialTokens special;
  special.eos = end;
  special.eos_ids = {kEnd};
  auto made = text::Tokenizer::parse(tokenizer, special, "test");
  EXPECT_TRUE(made) << made.error().message;
  special.bos = "<s>";
  auto chat = text::ChatTemplate::parse(source, special, "test");
  EXPECT_TRUE(chat) << chat.error().message;
  return {.names = {"tiny"},
          .tokenizer = *made,
          .chat = *chat,
          .context = 1 << 20,
          .positions_max = 1 << 20,
          .vocab = 257,
          .token_bytes_max = 16};
}

class Histories : public ::testing::Test {
 protected:
  void use(const std::string& source, const std::string& end) { model_ = model_with(source, end); }

  CallPrompt ask(const Json& messages, History history = History::kTemplate) {
    GenerateRequest request;
    request.dialect = dialects::Dialect::kChat;
    request.messages_json = messages.dump();
    request.add_special_tokens = false;
    request.tools_json = tools_;
    auto prompt = prompt_of_call(model_, TreeCalls(tree_), request, history, now_);
    EXPECT_TRUE(std::holds_alternative<CallPrompt>(prompt))
        << std::get<dialects::ApiError>(prompt).message;
    return std::get<CallPrompt>(prompt);
  }
  Ids ids(const std::string& text) const { return model_.tokenizer->encode(text)->ids; }
  std::string text(const Ids& ids) const { return *model_.tokenizer->decode(ids); }

  // The model answers `drawn`, which the client sees as `message`.
  std::size_t answer(const CallPrompt& prompt, const Ids& drawn, const Json& message) {
    Call call;
    call.drawn.tokens = drawn;
    call.drawn.behaviour.assign(drawn.size(), -1.0f);
    call.drawn.versions = experience::VersionRuns::all(1, drawn.size());
    call.after = digest_with(prompt.dialogue, message);
    call.past = prompt.past;
    return tree_.add(prompt.tokens, prompt.place, std::move(call));
  }
  static Json said(const std::string& role, const std::string& content) {
    return {{"role", role}, {"content", content}};
  }
  std::string rendered(const Json& messages) {
    text::RenderOptions options;
    options.now_unix_s = now_;
    options.tools_json = tools_;
    return std::get<std::string>(dialects::render_chat(model_, messages.dump(), options));
  }

  dialects::ServedModel model_;
  SessionTree tree_;
  std::string tools_;
  std::int64_t now_ = 1'700'000'000;
};

// Where a template writes answers as they were, the tokens are those of the whole rendering.
TEST_F(Histories, GrowthIsWhatTheWholeRenderingAdds) {
  const std::pair<const char*, const char*> kTemplates[] = {
      {"chatml_default_system.jinja", "<|im_end|>"},
      {"llama3.jinja", "<|eot_id|>"},
      {"zephyr_generation.jinja", "</s>"},
      {"qwen25_tools.jinja", "<|im_end|>"},
      {"gemma.jinja", "<end_of_turn>"},
      {"mistral.jinja", "</s>"}};
  for (const auto& [name, end] : kTemplates) {
    SCOPED_TRACE(name);
    use(read_template(name), end);
    tree_ = {};
    Json messages = Json::array({said("user", "hello")});
    std::optional<std::size_t> before;
    for (int turn = 0; turn < 4; ++turn) {
      const CallPrompt prompt = ask(messages);
      EXPECT_EQ(text(prompt.tokens), rendered(messages));
      EXPECT_EQ(prompt.place.parent, before);
      EXPECT_FALSE(prompt.rewritten);
      const std::string reply = "reply " + std::to_string(turn);
      const Json message = said("assistant", reply);
      const std::string opening = rendered(messages);
      messages.push_back(message);
      // As the template writes it, with the space or line before it.
      std::string wrote = rendered(messages).substr(opening.size());
      Ids drawn = ids(wrote.substr(0, wrote.find(end)));
      drawn.push_back(kEnd);
      before = answer(prompt, drawn, message);
      messages.push_back(said("user", "more " + std::to_string(turn)));
    }
    EXPECT_EQ(tree_.leaves().size(), 1u);
  }
}

// Phi's template ends a text without an opening by the mark of its end, and writes one more line
// after an opening than before an answer.
TEST_F(Histories, ATemplateMayWriteOtherwiseWhatNoAnswerFollows) {
  use(read_template("phi3.jinja"), "<|end|>");
  const CallPrompt first = ask(Json::array({said("user", "hello")}));
  Ids drawn = ids("hi");
  drawn.push_back(kEnd);
  const std::size_t call = answer(first, drawn, said("assistant", "hi"));
  const CallPrompt second =
      ask(Json::array({said("user", "hello"), said("assistant", "hi"), said("user", "more")}));
  EXPECT_FALSE(second.rewritten);
  EXPECT_EQ(second.place.parent, call);
  EXPECT_EQ(text(second.tokens),
            "<|user|>\nhello<|end|>\n\n<|assistant|>\n\nhi<|end|>\n\n"
            "<|user|>\nmore<|end|>\n\n<|assistant|>\n\n");
}

TEST_F(Histories, AnAnswerThatWasCutGetsTheEndThatTheTemplateWrites) {
  use(read_template("chatml_default_system.jinja"), "<|im_end|>");
  const CallPrompt first = ask(Json::array({said("user", "hello")}));
  answer(first, ids("half an ans"), said("assistant", "half an ans"));
  const Json messages =
      Json::array({said("user", "hello"), said("assistant", "half an ans"), said("user", "go on")});
  const CallPrompt second = ask(messages);
  EXPECT_EQ(text(second.tokens), rendered(messages));
  EXPECT_EQ(second.place.shared, first.tokens.size() + 11);
}

// What the model wrote stays, whatever the template makes of it.
TEST_F(Histories, CallsOfToolsKeepTheTokensThatWereDrawn) {
  use(read_template("qwen25_tools.jinja"), "<|im_end|>");
  tools_ = R"([{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}])";
  const CallPrompt first = ask(Json::array({said("user", "1+2?")}));
  const std::string wrote =
      "<tool_call>{\"name\":\"add\",   \"arguments\":{\"b\":2,\"a\":1}}</tool_call>";
  Ids drawn = ids(wrote);
  drawn.push_back(kEnd);
  const auto message = [](const char* arguments) {
    return Json{{"role", "assistant"},
                {"content", nullptr},
                {"tool_calls",
                 {{{"id", "call_1"},
                   {"type", "function"},
                   {"function", {{"name", "add"}, {"arguments", arguments}}}}}}};
  };
  answer(first, drawn, message(R"({"b":2,"a":1})"));
  // The client sends the arguments back in its own order, and fields that hold nothing.
  Json back = message(R"({"a": 1, "b": 2})");
  back["refusal"] = nullptr;
  back["content"] = "";
  const Json result = {{"role", "tool"}, {"tool_call_id", "call_1"}, {"content", "3"}};
  const CallPrompt second = ask(Json::array({said("user", "1+2?"), back, result}));
  ASSERT_TRUE(second.place.parent);
  EXPECT_FALSE(second.rewritten);
  const std::string all = text(second.tokens);
  EXPECT_NE(all.find(wrote + "<|im_end|>\n<|im_start|>user\n<tool_response>\n3\n"), all.npos)
      << all;
  EXPECT_EQ(second.place.shared, first.tokens.size() + drawn.size());
  // Another id is another dialogue.
  Json other = back;
  other["tool_calls"][0]["id"] = "call_2";
  EXPECT_NE(ask(Json::array({said("user", "1+2?"), other, result})).place.shared,
            second.place.shared);
}

// Qwen3 leaves out the thinking of answers before the last question.
TEST_F(Histories, ATemplateThatDropsThinkingStartsAForkOrKeeps) {
  use(read_template("qwen3_thinking.jinja"), "<|im_end|>");
  const Json asked = Json::array({said("user", "hello")});
  const CallPrompt first = ask(asked);
  const std::string wrote = "<think>\nhm\n</think>\n\nhi";
  Ids drawn = ids(wrote);
  drawn.push_back(kEnd);
  const std::size_t call = answer(first, drawn, said("assistant", wrote));
  const Json messages = Json::array({asked[0], said("assistant", wrote), said("user", "more")});
  const CallPrompt fork = ask(messages);
  EXPECT_TRUE(fork.rewritten);
  EXPECT_EQ(text(fork.tokens), rendered(messages));
  EXPECT_EQ(text(fork.tokens).find("hm"), std::string::npos);
  const CallPrompt kept = ask(messages, History::kKeep);
  EXPECT_TRUE(kept.rewritten);
  EXPECT_EQ(kept.place.parent, call);
  EXPECT_EQ(kept.place.shared, tree_.length(call));
  EXPECT_EQ(text(kept.tokens), text(first.tokens) + wrote +
                                   "<|im_end|>\n<|im_start|>user\nmore<|im_end|>\n"
                                   "<|im_start|>assistant\n");
}

TEST_F(Histories, AnotherDateStartsAFork) {
  use("{{ '<d>' + strftime_now('%Y-%m-%d') }}{% for m in messages %}{{ '<' + m.role + '>' + "
      "m.content + '</s>' }}{% endfor %}{% if add_generation_prompt %}{{ '<assistant>' }}{% endif "
      "%}",
      "</s>");
  const CallPrompt first = ask(Json::array({said("user", "hello")}));
  Ids drawn = ids("hi");
  drawn.push_back(kEnd);
  answer(first, drawn, said("assistant", "hi"));
  const Json messages =
      Json::array({said("user", "hello"), said("assistant", "hi"), said("user", "more")});
  EXPECT_FALSE(ask(messages).rewritten);
  now_ += 86'400;
  const CallPrompt later = ask(messages);
  EXPECT_TRUE(later.rewritten);
  EXPECT_FALSE(later.place.parent);
  EXPECT_EQ(text(later.tokens), rendered(messages));
}

TEST_F(Histories, EditedAnswersAndOtherToolsAreNotWhatWasSaid) {
  use(read_template("chatml_default_system.jinja"), "<|im_end|>");
  const CallPrompt first = ask(Json::array({said("user", "hello")}));
  Ids drawn = ids("hi");
  drawn.push_back(kEnd);
  answer(first, drawn, said("assistant", "hi"));
  const Json edited =
      Json::array({said("user", "hello"), said("assistant", "hi!"), said("user", "more")});
  const CallPrompt prompt = ask(edited);
  EXPECT_FALSE(prompt.rewritten) << "the client has changed it, not the template";
  EXPECT_EQ(text(prompt.tokens), rendered(edited));
  EXPECT_EQ(prompt.place.shared, first.tokens.size() + 2) << "what is equal is shared";
}

TEST_F(Histories, PromptsOfIdsAreMatchedByTheirIds) {
  use(read_template("chatml_default_system.jinja"), "<|im_end|>");
  GenerateRequest request;
  request.prompts = {Ids{1, 2}};
  auto prompt = std::get<CallPrompt>(
      prompt_of_call(model_, TreeCalls(tree_), request, History::kTemplate, now_));
  answer(prompt, {3}, {});
  request.prompts = {Ids{1, 2, 3, 4}};
  prompt = std::get<CallPrompt>(
      prompt_of_call(model_, TreeCalls(tree_), request, History::kTemplate, now_));
  EXPECT_EQ(prompt.place.parent, 0u);
  EXPECT_EQ(prompt.place.shared, 3u);
  request.prompts = {Ids{1}, Ids{2}};
  EXPECT_TRUE(std::holds_alternative<dialects::ApiError>(
      prompt_of_call(model_, TreeCalls(tree_), request, History::kTemplate, now_)));
}

}  // namespace
}  // namespace troupe::sessions
