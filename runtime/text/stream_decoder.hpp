// Decodes one sequence id by id, for streaming output and stop strings: returns a piece of text as
// soon as no later id can change it, so a character that is split over several ids comes out whole.
// For byte-level vocabularies the pieces of a sequence, with `finish`, add up to Tokenizer::decode.
// Owned by one sequence; one thread at a time. State: at most 17 ids and their text.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/tokenizer.hpp"

#include <memory>
#include <string>

struct troupe_text_stream;

namespace troupe::text {

class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);
  StreamDecoder(StreamDecoder&&) noexcept = default;
  StreamDecoder& operator=(StreamDecoder&&) noexcept = default;

  // The text that this id made final; empty while a character is incomplete.
  core::Result<std::string> push(TokenId id);

  // Returns the text that was held back, with U+FFFD for an incomplete character, and resets the
  // decoder.
  core::Result<std::string> finish();

 private:
  std::shared_ptr<const troupe_text_tokenizer> tokenizer_;  // outlives stream_
  std::unique_ptr<troupe_text_stream, void (*)(troupe_text_stream*)> stream_;
};

}  // namespace troupe::text
