// Integers as bytes, the least one first, for files of that order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::core {

// The lowest `count` bytes of `value`.
inline std::string little_endian(std::uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

// The number that the first `count` bytes are; there must be that many.
inline std::uint64_t from_little_endian(std::string_view bytes, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
    value |= std::uint64_t{byte} << (8 * i);
  }
  return value;
}

}  // namespace troupe::core
