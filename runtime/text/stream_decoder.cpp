#include "runtime/text/stream_decoder.hpp"

#include "runtime/text/rust_edge.hpp"

namespace troupe::text {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : tokenizer_(tokenizer.handle()),
      stream_(troupe_text_stream_new(tokenizer_.get(), skip_special ? 1 : 0),
              troupe_text_stream_free) {}

core::Result<std::string> StreamDecoder::push(TokenId id) {
  RustString text, why;
  const auto status =
      troupe_text_stream_push(stream_.get(), static_cast<std::uint32_t>(id), text.out(), why.out());
  if (status != TROUPE_TEXT_OK) return rust_failure(status, why, "");
  return text.str();
}

core::Result<std::string> StreamDecoder::finish() {
  RustString text, why;
  const auto status = troupe_text_stream_finish(stream_.get(), text.out(), why.out());
  if (status != TROUPE_TEXT_OK) return rust_failure(status, why, "");
  return text.str();
}

}  // namespace troupe::text
