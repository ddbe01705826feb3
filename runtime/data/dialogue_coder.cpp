#include "runtime/data/dialogue_coder.hpp"

#include <algorithm>

namespace troupe::data {
namespace {

using core::ErrorCode;
using core::fail;
using core::Result;
using text::ChatMessage;

core::Failure bad(const std::string& why, std::string_view advice = {}) {
  return fail(ErrorCode::kData, why, advice);
}

core::Failure rewrites(std::size_t turn) {
  return bad("the chat template writes turn " + std::to_string(turn + 1) +
             " differently as a prompt or once other turns follow, so the answer's tokens cannot "
             "be told apart (templates of thinking models do so): learn from the last turn only "
             "(--data.multiturn false), put another chat_template.jinja into the model folder, or "
             "give plain text");
}

}  // namespace

CodedText joined(const Tokens& prompt, const Tokens& answer) {
  CodedText out{prompt, std::vector<std::uint8_t>(prompt.size(), 0)};
  out.tokens.insert(out.tokens.end(), answer.begin(), answer.end());
  out.learn.resize(out.tokens.size(), 1);
  return out;
}

Result<std::string> DialogueCoder::render(std::span<const ChatMessage> messages, bool open) const {
  if (chat_ == nullptr) {
    return fail(ErrorCode::kConfig, "a list of messages, but the model folder has no chat template",
                "add chat_template.jinja to it or use text columns");
  }
  text::RenderOptions options;
  options.add_generation_prompt = open;
  return chat_->render(messages, options);
}

// How many leading tokens belong to the answer: up to its last end token, or all if it has none.
std::size_t DialogueCoder::answer_size(std::span<const std::int32_t> tokens) const {
  for (std::size_t size = tokens.size(); size > 0; --size)
    if (tokenizer_.is_eos(tokens[size - 1])) return size;
  return tokens.size();
}

// Tokenises `text` and marks the tokens that begin inside a span as learned. If a token straddles
// the beginning of a span, tokenises the pieces between the boundaries separately, as in
// generation, where the prompt is tokenised without the answer.
Result<CodedText> DialogueCoder::code(const std::string& text,
                                      const std::vector<Span>& spans) const {
  TROUPE_TRY_ASSIGN(encoded, tokenizer_.encode(text));
  CodedText out{std::move(encoded.ids), {}};
  out.learn.assign(out.tokens.size(), 0);
  std::size_t i = 0;
  for (const Span& span : spans) {
    for (; i < out.tokens.size() && encoded.offsets[i].begin < span.begin; ++i) {
      if (encoded.offsets[i].end > span.begin) return code_pieces(text, spans);
    }
    const std::size_t first = i;
    while (i < out.tokens.size() && encoded.offsets[i].begin < span.end)
      ++i;
    const std::size_t learned =
        answer_size(std::span<const std::int32_t>(out.tokens).subspan(first, i - first));
    std::fill_n(out.learn.begin() + static_cast<std::ptrdiff_t>(first), learned, std::uint8_t{1});
  }
  return out;
}

Result<CodedText> DialogueCoder::code_pieces(const std::string& text,
                                             const std::vector<Span>& spans) const {
  CodedText out;
  std::size_t at = 0;
  const auto add = [&](std::size_t end, bool learned) -> Result<void> {
    if (end == at) return {};
    TROUPE_TRY_ASSIGN(encoded, tokenizer_.encode(std::string_view(text).substr(at, end - at)));
    at = end;
    out.tokens.insert(out.tokens.end(), encoded.ids.begin(), encoded.ids.end());
    if (learned) out.learn.resize(out.learn.size() + answer_size(encoded.ids), 1);
    out.learn.resize(out.tokens.size(), 0);
    return {};
  };
  for (const Span& span : spans) {
    TROUPE_TRY(add(span.begin, false));
    TROUPE_TRY(add(span.end, true));
  }
  return out;
}

Result<CodedText> DialogueCoder::dialogue(std::span<const ChatMessage> messages,
                                          bool every_turn) const {
  if (messages.empty() || messages.back().role != "assistant") {
    return bad("the last message must be the assistant's, it is what the model learns");
  }
  if (messages.front().role == "assistant") {
    return bad("the first message is the assistant's", "it needs a prompt before it");
  }
  TROUPE_TRY_ASSIGN(full, render(messages, false));
  std::vector<Span> spans;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool last = i + 1 == messages.size();
    if (messages[i].role != "assistant" || (!every_turn && !last)) continue;
    if (messages[i].content.empty()) {
      return bad("turn " + std::to_string(i + 1) + ", the assistant's, is empty");
    }
    TROUPE_TRY_ASSIGN(prefix, render(messages.first(i), true));
    std::string until = full;
    if (!last) {
      TROUPE_TRY_SET(until, render(messages.first(i + 1), false));
    }
    if (!full.starts_with(until) || !until.starts_with(prefix)) return rewrites(i);
    spans.push_back({prefix.size(), until.size()});
  }
  TROUPE_TRY_ASSIGN(out, code(full, spans));
  while (!out.learn.empty() && out.learn.back() == 0) {
    out.learn.pop_back();
    out.tokens.pop_back();
  }
  if (out.tokens.empty()) return bad("the answer has no tokens");
  if (out.learn.front() != 0) return bad("the prompt has no tokens");
  return out;
}

Result<void> DialogueCoder::end(Tokens& tokens) const {
  if (!tokens.empty() && tokenizer_.is_eos(tokens.back())) return {};
  const auto& ends = tokenizer_.eos_ids();
  if (ends.empty()) {
    return fail(ErrorCode::kConfig, tokenizer_.where() + ": the tokenizer names no end token",
                "set eos_token in tokenizer_config.json");
  }
  tokens.push_back(ends.front());
  return {};
}

Result<CodedAnswers> DialogueCoder::split(const std::string& prefix,
                                          std::span<const std::string> wholes,
                                          bool ends) const {
  CodedAnswers out;
  TROUPE_TRY_ASSIGN(prompt, tokenizer_.encode(prefix));
  out.prompt = std::move(prompt.ids);
  if (out.prompt.empty()) return bad("the prompt has no tokens");
  for (const std::string& whole : wholes) {
    TROUPE_TRY_ASSIGN(encoded, tokenizer_.encode(whole));
    const Tokens& ids = encoded.ids;
    Tokens answer;
    if (ids.size() >= out.prompt.size() &&
        std::equal(out.prompt.begin(), out.prompt.end(), ids.begin())) {
      answer.assign(ids.begin() + std::ssize(out.prompt), ids.end());
    } else {
      TROUPE_TRY_ASSIGN(rest, tokenizer_.encode(std::string_view(whole).substr(prefix.size())));
      answer = std::move(rest.ids);
    }
    if (ends) {
      TROUPE_TRY(end(answer));
    } else {
      answer.resize(answer_size(answer));
    }
    if (answer.empty()) return bad("the answer has no tokens");
    out.answers.push_back(std::move(answer));
  }
  return out;
}

Result<CodedAnswers> DialogueCoder::answers(std::span<const ChatMessage> prompt,
                                            std::span<const std::string> answers) const {
  TROUPE_TRY_ASSIGN(prefix, render(prompt, true));
  std::vector<std::string> wholes;
  std::vector<ChatMessage> messages(prompt.begin(), prompt.end());
  for (const std::string& answer : answers) {
    if (answer.empty()) return bad("the answer is empty");
    messages.push_back({"assistant", answer});
    TROUPE_TRY_ASSIGN(whole, render(messages, false));
    messages.pop_back();
    if (!whole.starts_with(prefix)) return rewrites(prompt.size());
    wholes.push_back(std::move(whole));
  }
  return split(prefix, wholes, false);
}

Result<CodedAnswers> DialogueCoder::plain_answers(const std::string& prompt,
                                                  std::span<const std::string> answers) const {
  std::vector<std::string> wholes;
  for (const std::string& answer : answers) {
    if (answer.empty()) return bad("the answer is empty");
    wholes.push_back(prompt + answer);
  }
  return split(prompt, wholes, true);
}

Result<Tokens> DialogueCoder::bare(const std::string& text) const {
  TROUPE_TRY_ASSIGN(encoded, tokenizer_.encode(text));
  return std::move(encoded.ids);
}

Result<Tokens> DialogueCoder::plain(const std::string& text) const {
  TROUPE_TRY_ASSIGN(tokens, bare(text));
  TROUPE_TRY(end(tokens));
  return tokens;
}

}  // namespace troupe::data
