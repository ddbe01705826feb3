// Turns dialogues and plain text into tokens, and marks the tokens to learn: those of the
// assistant's answers. To find an answer in the rendered dialogue, the coder also renders the turns
// before it with the chat template. Templates of thinking models write a turn differently once
// others follow; that is an error where the answer's place depends on it. Text that a template
// writes after the end token of an answer is not learned. Plain text gets the tokenizer's end
// token. Stateless; any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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
  // outlive this object.
  DialogueCoder(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat)
      : tokenizer_(tokenizer), chat_(chat) {}

  // Encodes a whole dialogue, whose last turn must be the assistant's. Marks that turn as learned
  // or, with `every_turn`, each turn of the assistant. No error of this class names the row.
  core::Result<CodedText> dialogue(std::span<const text::ChatMessage> messages,
                                   bool every_turn) const;

  // Encodes one or more alternative answers of the assistant to the dialogue `prompt`.
  core::Result<CodedAnswers> answers(std::span<const text::ChatMessage> prompt,
                                     std::span<const std::string> answers) const;

  // The same for plain text, without the template. An answer directly follows the prompt and gets
  // the end token.
  core::Result<CodedAnswers> plain_answers(const std::string& prompt,
                                           std::span<const std::string> answers) const;

  // Encodes a text and appends the end token.
  core::Result<Tokens> plain(const std::string& text) const;

  // Encodes a text as it is.
  core::Result<Tokens> bare(const std::string& text) const;

  // The id of a text that is one token (Tokenizer::single).
  core::Result<std::int32_t> single(const std::string& text) const {
    return tokenizer_.single(text);
  }

 private:
  struct Span {
    std::size_t begin = 0, end = 0;  // byte offsets of an answer in the rendered text
  };
  // `open`: ends the text with the header of the assistant's next turn.
  core::Result<std::string> render(std::span<const text::ChatMessage> messages, bool open) const;
  std::size_t answer_size(std::span<const std::int32_t> tokens) const;
  core::Result<CodedText> code(const std::string& text, const std::vector<Span>& spans) const;
  core::Result<CodedText> code_pieces(const std::string& text,
                                      const std::vector<Span>& spans) const;
  // Splits texts that begin with `prefix` into prompt and answers. `ends`: appends the end token to
  // each answer, for plain text; else cuts the answer after its last end token.
  core::Result<CodedAnswers> split(const std::string& prefix,
                                   std::span<const std::string> wholes,
                                   bool ends) const;
  core::Result<void> end(Tokens& tokens) const;

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate* chat_;
};

// Joins a prompt and its answer to a sequence in which the answer is learned.
CodedText joined(const Tokens& prompt, const Tokens& answer);

}  // namespace troupe::data
