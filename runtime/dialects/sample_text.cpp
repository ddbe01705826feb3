#include "runtime/dialects/sample_text.hpp"

#include <algorithm>

namespace troupe::dialects {

using engine::FinishReason;

SampleText::SampleText(const std::optional<text::Tokenizer>& tokenizer,
                       const engine::SamplingParams& params,
                       bool skip_special,
                       bool include_stop)
    : filter_(params.stop_strings, include_stop),
      stop_tokens_(params.stop_tokens),
      include_stop_(include_stop),
      stops_from_(static_cast<std::size_t>(params.min_new_tokens)) {
  if (tokenizer) decoder_.emplace(*tokenizer, skip_special);
}

core::Result<std::string> SampleText::push(std::int32_t token) {
  ++taken_;
  if (!decoder_) return std::string();
  TROUPE_TRY_ASSIGN(piece, decoder_->push(token));
  return filter_.push(piece, taken_ >= stops_from_);
}

core::Result<std::string> SampleText::go_on(std::span<const std::int32_t> tokens) {
  std::string out;
  for (const std::int32_t token : tokens) {
    TROUPE_TRY_ASSIGN(piece, push(token));
    out += piece;
  }
  return out;
}

core::Result<std::string> SampleText::end(std::span<const std::int32_t> tokens,
                                          FinishReason reason) {
  std::string out;
  const bool by_token =
      !tokens.empty() &&
      (reason == FinishReason::kEos ||
       (reason == FinishReason::kStop &&
        std::find(stop_tokens_.begin(), stop_tokens_.end(), tokens.back()) != stop_tokens_.end()));
  const bool leave_out = by_token && !include_stop_;
  TROUPE_TRY_ASSIGN(text, go_on(tokens.first(tokens.size() - (leave_out ? 1 : 0))));
  if (leave_out) ++taken_;
  out += text;
  if (!decoder_) return out;
  TROUPE_TRY_ASSIGN(last, decoder_->finish());
  out += filter_.push(last, taken_ >= stops_from_);
  out += filter_.finish();
  return out;
}

}  // namespace troupe::dialects
