#include "runtime/wire/frame.hpp"

#include "runtime/wire/limits.hpp"

#include <bit>
#include <cstring>
#include <string>

namespace troupe::wire {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

namespace {

std::uint32_t word32(std::span<const std::byte> bytes, std::size_t index) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

core::Failure malformed(const std::string& why) {
  return core::fail(ErrorCode::kData, "malformed frame: " + why);
}

core::Result<void> check_frame(std::span<const std::byte> bytes) {
  if (bytes.size() > limits::kMessage_bytes_max) {
    return malformed(std::to_string(bytes.size()) + " bytes, more than the " +
                     std::to_string(limits::kMessage_bytes_max) + " of a message");
  }
  if (bytes.size() < 16 || bytes.size() % 8 != 0) {
    return malformed(std::to_string(bytes.size()) + " bytes are not a whole message");
  }
  const std::uint64_t segments = std::uint64_t{word32(bytes, 0)} + 1;
  if (segments > limits::kFrameSegments_max) {
    return malformed(std::to_string(segments) + " segments, more than " +
                     std::to_string(limits::kFrameSegments_max));
  }
  // The table holds the count and one size per segment, padded to whole words.
  std::uint64_t words = (segments + 2) / 2;
  if (words * 8 > bytes.size()) return malformed("the segment table is cut off");
  for (std::uint64_t i = 0; i < segments; ++i)
    words += word32(bytes, 1 + i);
  if (words * 8 != bytes.size()) {
    return malformed("its segments have " + std::to_string(words * 8) + " bytes, the frame has " +
                     std::to_string(bytes.size()));
  }
  return {};
}

}  // namespace

core::Result<Frame> Frame::from_words(std::vector<std::uint64_t> words) {
  TROUPE_TRY(check_frame(std::as_bytes(std::span<const std::uint64_t>(words))));
  return Frame(std::move(words));
}

core::Result<Frame> Frame::copy_of(std::span<const std::byte> bytes) {
  TROUPE_TRY(check_frame(bytes));
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return Frame(std::move(words));
}

}  // namespace troupe::wire
