// Finds an answer in the rendering of a whole dialogue, for templates that do not render the
// dialogue up to it: some want a turn of the user in every dialogue, or before the header of an
// answer. Renders the dialogue again with other words in the answer's place and sees what changes.
// Internal to this room; pure functions, any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace troupe::data {

// Bytes [begin, end) of a rendered dialogue that are an answer, with the mark that ends it.
struct AnswerSpan {
  std::size_t begin = 0, end = 0;
};

class AnswerFinder {
 public:
  // What the template makes of messages; the flag asks for the header of the next answer.
  using Render =
      std::function<core::Result<std::string>(std::span<const text::ChatMessage>, bool open)>;

  // `full`: the rendering of `messages` without such a header. All must outlive this object.
  AnswerFinder(const text::Tokenizer& tokenizer,
               std::span<const text::ChatMessage> messages,
               const std::string& full,
               Render render)
      : tokenizer_(tokenizer), messages_(messages), full_(full), render_(std::move(render)) {}

  // The place of turn `i`, one of the assistant's. Error: the template does not render the other
  // words, or the turn's own words are not where they were put.
  core::Result<AnswerSpan> find(std::size_t i) const;

 private:
  // Bytes of `full` that depend on what turn `i` says.
  core::Result<AnswerSpan> changing(std::size_t i) const;
  // The header of an answer, from the longest beginning that renders with and without it.
  std::optional<std::string> header() const;
  // The first mark after `from` that ends an answer; `to` if there is none before it.
  std::size_t behind_end_mark(std::size_t from, std::size_t to, std::size_t otherwise) const;

  const text::Tokenizer& tokenizer_;
  std::span<const text::ChatMessage> messages_;
  const std::string& full_;
  Render render_;
};

}  // namespace troupe::data
