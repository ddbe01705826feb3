// One control message as bytes: an immutable, 8-byte aligned buffer in Cap'n Proto's stream framing
// (segment table, then segments). Copies share the buffer, so a frame may be handed between
// threads. Every Frame has passed a check of its size and segment table; the reader checks the
// contents of the segments (envelope.hpp). Bounds: kMessage_bytes_max, kFrameSegments_max. A
// message longer than kFrame_bytes_max travels in parts (parts.hpp).
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::wire {

class Frame {
 public:
  // Error: kData; the message says what is wrong with the size or the segment table.
  static core::Result<Frame> from_words(std::vector<std::uint64_t> words);
  // Like from_words, for bytes of any alignment; copies them.
  static core::Result<Frame> copy_of(std::span<const std::byte> bytes);

  std::span<const std::uint64_t> words() const noexcept { return *words_; }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(words()); }
  std::size_t size_bytes() const noexcept { return words_->size() * sizeof(std::uint64_t); }

 private:
  explicit Frame(std::vector<std::uint64_t> words)
      : words_(std::make_shared<const std::vector<std::uint64_t>>(std::move(words))) {}

  std::shared_ptr<const std::vector<std::uint64_t>> words_;
};

}  // namespace troupe::wire
