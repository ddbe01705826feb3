#include "runtime/data/dialogue_coder.hpp"

#include "runtime/text/messages.hpp"

#include <algorithm>

namespace troupe::data {
namespace {

using text::ChatMessage;

core::Failure bad(const std::string& why, std::string_view advice = {}) {
  return fail(ErrorCode::kData, why, advice);
}

// `last`: only the last turn is learned, so that no turn after it changes how it is written.
core::Failure rewrites(std::size_t turn, bool last) {
  const std::string which = "the chat template writes turn " + std::to_string(turn + 1);
  if (last) {
    return bad(which +
                   " in another way than its prompt begins it, so the answer's tokens cannot be "
                   "told apart (some templates open the thinking in the prompt and drop it from "
                   "answers)",
               "put another chat_template.jinja into the model folder, or give plain text");
  }
  return bad(which +
                 " differently as a prompt or once other turns follow, so the answer's tokens "
                 "cannot be told apart (templates of thinking models do so)",
             "learn from the last turn only (--data.multiturn false), put another "
             "chat_template.jinja into the model folder, or give plain text");
}

// The row is at fault where the template refuses it.
core::Failure of_row(core::Error error) {
  if (error.code == ErrorCode::kInvalidArgument) error.code = ErrorCode::kData;
  return fail(std::move(error));
}

// The error for turn `i`, whose prompt the template rendered neither as such nor reworded.
core::Failure unfound(std::size_t i, const core::Error& prompt, const core::Error& whole) {
  return bad("turn " + std::to_string(i + 1) + ", the assistant's: the dialogue up to turn " +
             std::to_string(i) +
             " does not go through the chat template, and in the whole the answer's tokens cannot "
             "be told apart (" +
             std::string(whole.what()) + "): " + std::string(prompt.what()));
}

// Whether turn `i` is learned.
Result<bool> is_learned(const ChatMessage& turn, std::size_t i) {
  const bool own = turn.role == "assistant";
  const bool wanted = turn.weight.value_or(own);
  const std::string place = "turn " + std::to_string(i + 1);
  if (wanted && !own) {
    return bad(place + " has a weight of 1 and is from '" + turn.role + "'",
               "only turns of the assistant are learned");
  }
  if (wanted && text::says_nothing(turn)) return bad(place + ", the assistant's, is empty");
  return wanted;
}

Result<void> check_answer(const ChatMessage& answer) {
  if (text::says_nothing(answer)) return bad("the answer is empty");
  if (answer.weight.value_or(true)) return {};
  return bad("the answer has a weight of 0, so that nothing of the row is learned", "leave it out");
}

}  // namespace

CodedText joined(const Tokens& prompt, const Tokens& answer) {
  CodedText out{prompt, std::vector<std::uint8_t>(prompt.size(), 0)};
  out.tokens.insert(out.tokens.end(), answer.begin(), answer.end());
  out.learn.resize(out.tokens.size(), 1);
  return out;
}

Result<std::string> DialogueCoder::render(std::span<const ChatMessage> messages,
                                          const text::ChatInputs& inputs,
                                          bool open) const {
  if (chat_ == nullptr) {
    return fail(ErrorCode::kConfig, "a list of messages, but the model folder has no chat template",
                "add chat_template.jinja to it or use text columns");
  }
  auto rendered = chat_->render(messages, text::RenderOptions::with(inputs, open));
  if (!rendered) return of_row(rendered.error());
  return rendered;
}

Result<AnswerSpan> DialogueCoder::span_of(std::span<const ChatMessage> messages,
                                          const text::ChatInputs& inputs,
                                          std::size_t i,
                                          const std::string& full) const {
  const bool last = i + 1 == messages.size();
  const auto prefix = render(messages.first(i), inputs, true);
  const auto until =
      last ? Result<std::string>(full) : render(messages.first(i + 1), inputs, false);
  if (prefix && until) {
    if (!full.starts_with(*until) || !until->starts_with(*prefix)) return rewrites(i, last);
    return AnswerSpan{prefix->size(), until->size()};
  }
  const AnswerFinder finder(
      tokenizer_, messages, full,
      [&](std::span<const ChatMessage> turns, bool open) { return render(turns, inputs, open); });
  auto found = finder.find(i);
  if (!found) return unfound(i, (prefix ? until : prefix).error(), found.error());
  return found;
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
                                      const std::vector<AnswerSpan>& spans) const {
  TROUPE_TRY_ASSIGN(encoded, tokenizer_.encode(text));
  CodedText out{std::move(encoded.ids), {}};
  out.learn.assign(out.tokens.size(), 0);
  std::size_t i = 0;
  for (const AnswerSpan& span : spans) {
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
                                             const std::vector<AnswerSpan>& spans) const {
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
  for (const AnswerSpan& span : spans) {
    TROUPE_TRY(add(span.begin, false));
    TROUPE_TRY(add(span.end, true));
  }
  return out;
}

Result<CodedText> DialogueCoder::dialogue(std::span<const ChatMessage> messages,
                                          const text::ChatInputs& inputs,
                                          bool every_turn) const {
  if (messages.empty() || messages.back().role != "assistant")
    return bad("the last message must be the assistant's, it is what the model learns");
  if (messages.front().role == "assistant")
    return bad("the first message is the assistant's", "it needs a prompt before it");
  TROUPE_TRY_ASSIGN(full, render(messages, inputs, false));
  std::vector<AnswerSpan> spans;
  for (std::size_t i = every_turn ? 0 : messages.size() - 1; i < messages.size(); ++i) {
    TROUPE_TRY_ASSIGN(learned, is_learned(messages[i], i));
    if (!learned) continue;
    TROUPE_TRY_ASSIGN(span, span_of(messages, inputs, i, full));
    spans.push_back(span);
  }
  if (spans.empty()) {
    return bad(std::string(every_turn ? "every" : "the last") +
                   " answer has a weight of 0, so that nothing of the row is learned",
               every_turn ? "leave it out"
                          : "leave it out, or learn the other answers (--data.multiturn true)");
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
  TROUPE_TRY_SET(out.prompt, tokenizer_.ids(prefix, ends && front_));
  if (out.prompt.empty()) return bad("the prompt has no tokens");
  for (const std::string& whole : wholes) {
    TROUPE_TRY_ASSIGN(ids, tokenizer_.ids(whole, ends && front_));
    Tokens answer;
    if (ids.size() >= out.prompt.size() &&
        std::equal(out.prompt.begin(), out.prompt.end(), ids.begin())) {
      answer.assign(ids.begin() + std::ssize(out.prompt), ids.end());
    } else {
      TROUPE_TRY_SET(answer, tokenizer_.ids(std::string_view(whole).substr(prefix.size()), false));
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
                                            const text::ChatInputs& inputs,
                                            std::span<const ChatMessage> answers) const {
  std::optional<std::string> prefix;
  std::vector<std::string> wholes;
  std::vector<ChatMessage> messages(prompt.begin(), prompt.end());
  for (const ChatMessage& answer : answers) {
    TROUPE_TRY(check_answer(answer));
    messages.push_back(answer);
    TROUPE_TRY_ASSIGN(whole, render(messages, inputs, false));
    TROUPE_TRY_ASSIGN(span, span_of(messages, inputs, prompt.size(), whole));
    messages.pop_back();
    if (!prefix) prefix = whole.substr(0, span.begin);
    if (whole.substr(0, span.begin) != *prefix) return rewrites(prompt.size(), true);
    whole.resize(span.end);
    wholes.push_back(std::move(whole));
  }
  return split(*prefix, wholes, false);
}

Result<CodedAnswers> DialogueCoder::plain_answers(const std::string& prompt,
                                                  std::span<const ChatMessage> answers) const {
  std::vector<std::string> wholes;
  for (const ChatMessage& answer : answers) {
    TROUPE_TRY(check_answer(answer));
    if (!answer.json.empty()) {
      return bad(
          "the answer is a message with more than its text, which plain text has no place for",
          "leave --data.input_template away");
    }
    wholes.push_back(prompt + answer.content);
  }
  return split(prompt, wholes, true);
}

Result<Tokens> DialogueCoder::plain(const std::string& text) const {
  return tokenizer_.ids(text, front_);
}

Result<Tokens> DialogueCoder::plain_ended(const std::string& text) const {
  TROUPE_TRY_ASSIGN(tokens, plain(text));
  TROUPE_TRY(end(tokens));
  return tokens;
}

}  // namespace troupe::data
