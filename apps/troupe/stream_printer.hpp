// Prints one response while it grows: each character once it is complete, without special tokens,
// and without control bytes when the output is a terminal. One response at a time, one thread.
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

  // `tokens`: all of the response so far; prints the new ones. Fewer than before: prints nothing.
  core::Result<void> show(std::span<const std::int32_t> tokens);
  // Prints what was held back and a newline.
  core::Result<void> end();

  const std::string& text() const { return text_; }

 private:
  void print(const std::string& piece);

  text::StreamDecoder decoder_;
  const bool to_terminal_;
  std::size_t shown_ = 0;
  std::string text_;
};

}  // namespace troupe::app
