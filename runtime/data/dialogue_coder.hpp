// Turns dialogues and plain text into tokens, and marks the tokens to learn: those of the
// assistant's answers. To find an answer in the rendered dialogue, the coder also renders the turns
// before it with the chat template; where the template does not render those, the answer is found
// in the whole (answer_finder.hpp). Templates of thinking models write a turn differently once
// others follow; that is an error where the answer's place depends on it. Text that a template
// writes after the end token of an answer is not learned, and no turn with a weight of 0. Plain
// text begins with what the tokenizer puts in front of a text, and gets its end token. Stateless;
// any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/data/answer_finder.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::data {

using Tokens = std::vector<std::int32_t>;

// A sequence, and which of its tokens are learned: never the first, always the last.
struct CodedText {
  Tokens tokens;
  std::vector<std::uint8_t> learn;  // [tokens]; 1: learned
};

// A prompt, and one or more answers to it.
struct CodedAnswers {
  Tokens prompt;
  std::vector<Tokens> answers;  // each at least one token
};

class DialogueCoder {
 public:
  // Null `chat`: the model has no chat template, so only plain text can be encoded. Both must
  // outlive this object. `front`: plain text begins with what the tokenizer puts in front
  // (data.add_special_tokens).
  DialogueCoder(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat, bool front = true)
      : tokenizer_(tokenizer), chat_(chat), front_(front) {}

  // Encodes a whole dialogue, whose last turn must be the assistant's. Marks that turn as learned
  // or, with `every_turn`, each turn of the assistant whose weight is not 0. No error of this class
  // names the row.
  core::Result<CodedText> dialogue(std::span<const text::ChatMessage> messages,
                                   const text::ChatInputs& inputs,
                                   bool every_turn) const;

  // Encodes one or more alternative answers of the assistant to the dialogue `prompt`.
  core::Result<CodedAnswers> answers(std::span<const text::ChatMessage> prompt,
                                     const text::ChatInputs& inputs,
                                     std::span<const text::ChatMessage> answers) const;

  // `answers` for plain text, without template. An answer directly follows the prompt and gets
  // the end token.
  core::Result<CodedAnswers> plain_answers(const std::string& prompt,
                                           std::span<const text::ChatMessage> answers) const;

  // Encodes plain text.
  core::Result<Tokens> plain(const std::string& text) const;

  // Encodes plain text with the end token after it.
  core::Result<Tokens> plain_ended(const std::string& text) const;

  // What plain text begins with.
  std::span<const std::int32_t> front() const {
    return front_ ? std::span<const std::int32_t>(tokenizer_.front())
                  : std::span<const std::int32_t>();
  }

  // The id of a text that is one token (Tokenizer::single).
  core::Result<std::int32_t> single(const std::string& text) const {
    return tokenizer_.single(text);
  }

 private:
  // What the template makes of messages. `open`: ends the text with the header of the assistant's
  // next turn.
  core::Result<std::string> render(std::span<const text::ChatMessage> messages,
                                   const text::ChatInputs& inputs,
                                   bool open) const;
  // Where turn `i` stands in the rendering of all messages.
  core::Result<AnswerSpan> span_of(std::span<const text::ChatMessage> messages,
                                   const text::ChatInputs& inputs,
                                   std::size_t i,
                                   const std::string& full) const;
  std::size_t answer_size(std::span<const std::int32_t> tokens) const;
  core::Result<CodedText> code(const std::string& text, const std::vector<AnswerSpan>& spans) const;
  core::Result<CodedText> code_pieces(const std::string& text,
                                      const std::vector<AnswerSpan>& spans) const;
  // Splits texts that begin with `prefix` into prompt and answers. `ends`: appends the end token to
  // each answer, for plain text; else cuts the answer after its last end token.
  core::Result<CodedAnswers> split(const std::string& prefix,
                                   std::span<const std::string> wholes,
                                   bool ends) const;
  core::Result<void> end(Tokens& tokens) const;

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate* chat_;
  bool front_;
};

// Joins a prompt and its answer to a sequence in which the answer is learned.
CodedText joined(const Tokens& prompt, const Tokens& answer);

}  // namespace troupe::data
