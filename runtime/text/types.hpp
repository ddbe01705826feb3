// Token ids, and the options and result of Tokenizer::encode. Value types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::text {

using TokenId = std::int32_t;

// Bytes [begin, end) of the encoded text.
struct ByteSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const ByteSpan&, const ByteSpan&) = default;
};

// ids[i] covers the bytes offsets[i]. A token that the post-processor added covers no byte: [0, 0).
struct Encoding {
  std::vector<TokenId> ids;
  std::vector<ByteSpan> offsets;
};

struct EncodeOptions {
  bool add_special = false;  // let the post-processor add BOS, EOS and the like
};

}  // namespace troupe::text
