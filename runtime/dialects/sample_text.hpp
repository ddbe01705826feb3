// The text of one response while its tokens arrive. Owned by one request, on its strand.
#pragma once

#include "runtime/dialects/stop_filter.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/text/stream_decoder.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::dialects {

// Whole characters only, without special tokens, cut before a stop string.
class SampleText {
 public:
  // Without a tokenizer the text stays empty, and tokens are only counted.
  SampleText(const std::optional<text::Tokenizer>& tokenizer,
             const engine::SamplingParams& params,
             bool skip_special,
             bool include_stop);

  // Takes the next tokens of an unfinished response; returns the new text that can no longer
  // change.
  core::Result<std::string> go_on(std::span<const std::int32_t> tokens);
  // Takes the last tokens; returns the rest of the text. An end token adds no text, unless
  // `include_stop` is set.
  core::Result<std::string> end(std::span<const std::int32_t> tokens, engine::FinishReason reason);

  std::size_t taken() const noexcept { return taken_; }  // tokens so far
  const std::optional<std::string>& stop() const noexcept { return filter_.matched(); }

 private:
  core::Result<std::string> push(std::int32_t token);

  std::optional<text::StreamDecoder> decoder_;
  StopFilter filter_;
  const std::vector<std::int32_t> stop_tokens_;
  const bool include_stop_;
  const std::size_t
      stops_from_;  // the first token, counted from 1, that may complete a stop string
  std::size_t taken_ = 0;
};

}  // namespace troupe::dialects
