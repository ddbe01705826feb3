// The text of one response while its tokens come in: decoded character by character, special tokens
// left out, cut before a stop string. Owned by one request, on its strand. State: the decoder's and
// the stop filter's.
#pragma once

#include "apps/serving/stop_filter.hpp"
#include "runtime/core/result.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/text/stream_decoder.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::app {

class SampleText {
 public:
  // Without a tokenizer there is no text, and tokens are only counted.
  SampleText(const std::optional<text::Tokenizer>& tokenizer,
             const engine::SamplingParams& params,
             bool skip_special,
             bool include_stop);

  // The next tokens of a response that goes on; what of the text is new and certain.
  core::Result<std::string> go_on(std::span<const std::int32_t> tokens);
  // The last tokens, with why it ended. The end token itself has no text, unless it is kept.
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

}  // namespace troupe::app
