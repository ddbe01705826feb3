// Prints one response on standard output while it grows: each character once it is complete,
// without special tokens, and without control characters if the output is a terminal. One thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/stream_decoder.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace troupe::app {

class StreamPrinter {
 public:
  StreamPrinter(const text::Tokenizer& tokenizer, bool to_terminal)
      : decoder_(tokenizer), to_terminal_(to_terminal) {}

  // `tokens`: the whole response so far. Prints those that are new; if there are none, nothing.
  core::Result<void> show(std::span<const std::int32_t> tokens);
  // Prints an incomplete last character, if there is one, and a newline.
  core::Result<void> end();

  const std::string& text() const { return text_; }  // all that was printed, not made safe

 private:
  void print(const std::string& piece);

  text::StreamDecoder decoder_;
  const bool to_terminal_;
  std::size_t shown_ = 0;
  std::string text_;
};

}  // namespace troupe::app
