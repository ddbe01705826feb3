// The SSE4.2 instruction computes exactly this CRC, and the baseline processor has it.
#include "runtime/store/crc32c.hpp"

#include <nmmintrin.h>

#include <cstring>

namespace troupe::store {

std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc) noexcept {
  std::uint64_t state = static_cast<std::uint32_t>(~crc);
  const char* next = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, next += 8) {
    std::uint64_t word;
    std::memcpy(&word, next, sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<std::uint32_t>(state);
  for (; left > 0; --left, ++next) {
    narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(*next));
  }
  return ~narrow;
}

}  // namespace troupe::store
