// Dialogues and answers as tokens, with the tokens that a model learns from: the assistant's, found
// through the chat template itself by rendering the turns before each answer. A template that
// writes a turn differently once others follow it (thinking models) is refused where that matters.
// What a template writes after the token that ends an answer is not learned. Plain text gets the
// tokenizer's end token. Stateless over borrowed parts; any number of threads.
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

// A sequence and which of its tokens are learned (never the first); it ends with the last of them.
struct CodedText {
  Tokens tokens;
  std::vector<std::uint8_t> learn;  // [tokens]
};

// Answers to one prompt.
struct CodedAnswers {
  Tokens prompt;
  std::vector<Tokens> answers;  // each at least one token
};

class DialogueCoder {
 public:
  // Null `chat`: plain text only. Both outlive this object.
  DialogueCoder(const text::Tokenizer& tokenizer, const text::ChatTemplate* chat)
      : tokenizer_(tokenizer), chat_(chat) {}

  // A whole dialogue; learned are its last turn, which must be the assistant's, or all assistant
  // turns. Errors do not name the row.
  core::Result<CodedText> dialogue(std::span<const text::ChatMessage> messages,
                                   bool every_turn) const;

  // One or more answers of the assistant after `prompt`.
  core::Result<CodedAnswers> answers(std::span<const text::ChatMessage> prompt,
                                     std::span<const std::string> answers) const;

  // The same of plain texts: the answer follows the prompt directly, then the end token.
  core::Result<CodedAnswers> plain_answers(const std::string& prompt,
                                           std::span<const std::string> answers) const;

  // A text and the end token.
  core::Result<Tokens> plain(const std::string& text) const;

 private:
  struct Span {
    std::size_t begin = 0, end = 0;  // bytes of the text
  };
  core::Result<std::string> render(std::span<const text::ChatMessage> messages, bool open) const;
  std::size_t answer_size(std::span<const std::int32_t> tokens) const;
  core::Result<CodedText> code(const std::string& text, const std::vector<Span>& spans) const;
  core::Result<CodedText> code_pieces(const std::string& text,
                                      const std::vector<Span>& spans) const;
  // `ends`: plain text, which gets the end token.
  core::Result<CodedAnswers> split(const std::string& prefix,
                                   std::span<const std::string> wholes,
                                   bool ends) const;
  core::Result<void> end(Tokens& tokens) const;

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate* chat_;
};

// A sequence of a prompt and its answer.
CodedText joined(const Tokens& prompt, const Tokens& answer);

}  // namespace troupe::data
