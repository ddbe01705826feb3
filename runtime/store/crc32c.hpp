// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), as in iSCSI and TensorBoard's event files.
// Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::store {

// Of `bytes`, going on from `crc` (0 at the start).
std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc = 0) noexcept;

// TensorBoard's rotation, which keeps a CRC of data that holds CRCs from degenerating.
constexpr std::uint32_t masked_crc(std::uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

}  // namespace troupe::store
