// CRC-32C with the SSE4.2 instruction, which computes exactly this CRC and which every supported
// processor has. Three independent lanes hide the instruction's latency. A table advances the state
// of one lane past the bytes of the next.
#include "runtime/core/crc32c.hpp"

#include <emmintrin.h>
#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace troupe::core {
namespace {

// Short lanes: with lanes a page apart the streaming stores of a step have the same low address
// bits, and some processors (AMD Zen 3) then copy at a sixth of the rate.
constexpr std::size_t kLane_bytes = 256;
constexpr std::size_t kBlock_bytes = 3 * kLane_bytes;
constexpr std::size_t kAhead_bytes = 4096;  // from a line to the one that is prefetched with it
constexpr std::size_t kCrcLine_bytes = 64;
constexpr std::uint32_t kPolynomial = 0x82F63B78u;

// A linear map on 32 bits, given by the images of the single bits.
using Map = std::array<std::uint32_t, 32>;

constexpr std::uint32_t mapped(const Map& map, std::uint32_t state) {
  std::uint32_t image = 0;
  for (std::size_t bit = 0; bit < 32; ++bit)
    if ((state >> bit & 1u) != 0) image ^= map[bit];
  return image;
}

// Tables that advance a state by kLane_bytes zero bytes, one table per byte of the state.
constexpr auto make_shift() {
  Map map{};  // advances by one zero bit
  map[0] = kPolynomial;
  for (std::size_t bit = 1; bit < 32; ++bit)
    map[bit] = 1u << (bit - 1);
  for (std::size_t bits = 1; bits < 8 * kLane_bytes; bits *= 2) {
    Map squared{};
    for (std::size_t bit = 0; bit < 32; ++bit)
      squared[bit] = mapped(map, map[bit]);
    map = squared;
  }
  std::array<std::array<std::uint32_t, 256>, 4> table{};
  for (std::size_t place = 0; place < 4; ++place)
    for (std::uint32_t value = 0; value < 256; ++value)
      table[place][value] = mapped(map, value << (8 * place));
  return table;
}

constexpr auto kShift = make_shift();

std::uint64_t shifted(std::uint64_t state) noexcept {
  return kShift[0][state & 0xff] ^ kShift[1][state >> 8 & 0xff] ^ kShift[2][state >> 16 & 0xff] ^
         kShift[3][state >> 24 & 0xff];
}

std::uint64_t word_at(const char* bytes) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Copies a line with stores that bypass the caches.
void stream_line(char* to, const char* from) noexcept {
  for (std::size_t i = 0; i < kCrcLine_bytes; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
}

// The state after one block. With kCopies, also copies the block to `to`, aligned to 16 bytes.
// Prefetches what follows: the hardware's prefetcher sees three streams that start anew with every
// block.
template <bool kCopies>
std::uint64_t block_state(const char* bytes, std::uint64_t a, char* to) noexcept {
  std::uint64_t b = 0, c = 0;
  for (std::size_t i = 0; i < kLane_bytes; i += kCrcLine_bytes) {
    const char* const lanes[] = {bytes + i, bytes + kLane_bytes + i, bytes + 2 * kLane_bytes + i};
    for (const char* const lane : lanes)
      _mm_prefetch(lane + kAhead_bytes, _MM_HINT_T0);
    for (std::size_t j = 0; j < kCrcLine_bytes; j += 8) {
      a = _mm_crc32_u64(a, word_at(lanes[0] + j));
      b = _mm_crc32_u64(b, word_at(lanes[1] + j));
      c = _mm_crc32_u64(c, word_at(lanes[2] + j));
    }
    if constexpr (kCopies) {
      for (const char* const lane : lanes)
        stream_line(to + (lane - bytes), lane);
    }
  }
  return shifted(shifted(a) ^ b) ^ c;
}

std::uint32_t tail_state(const char* bytes, std::size_t size, std::uint64_t state) noexcept {
  for (; size >= 8; size -= 8, bytes += 8)
    state = _mm_crc32_u64(state, word_at(bytes));
  auto narrow = static_cast<std::uint32_t>(state);
  for (; size > 0; --size, ++bytes)
    narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(*bytes));
  return narrow;
}

}  // namespace

std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t crc) noexcept {
  std::uint64_t state = static_cast<std::uint32_t>(~crc);
  const char* next = static_cast<const char*>(bytes);
  for (; size >= kBlock_bytes; size -= kBlock_bytes, next += kBlock_bytes)
    state = block_state<false>(next, state, nullptr);
  return ~tail_state(next, size, state);
}

std::uint32_t copy_crc32c(void* to,
                          const void* from,
                          std::size_t size,
                          std::uint32_t crc) noexcept {
  const char* next = static_cast<const char*>(from);
  char* out = static_cast<char*>(to);
  if (reinterpret_cast<std::uintptr_t>(out) % 16 != 0) {
    std::memcpy(out, next, size);
    return crc32c(next, size, crc);
  }
  std::uint64_t state = static_cast<std::uint32_t>(~crc);
  for (; size >= kBlock_bytes; size -= kBlock_bytes, next += kBlock_bytes, out += kBlock_bytes)
    state = block_state<true>(next, state, out);
  _mm_sfence();
  std::memcpy(out, next, size);
  return ~tail_state(next, size, state);
}

}  // namespace troupe::core
