// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), as in iSCSI and TensorBoard's event files.
// Runs three lanes of the processor's instruction at a time, so that memory bandwidth is the limit
// for large blocks. Pure functions, safe on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::core {

// The CRC of `size` bytes, continued from `crc` (0 at the start).
std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t crc = 0) noexcept;
inline std::uint32_t text_crc32c(std::string_view text, std::uint32_t crc = 0) noexcept {
  return crc32c(text.data(), text.size(), crc);
}

// The CRC as above; also copies the bytes to `to`. The blocks must not overlap. If `to` is aligned
// to 16 bytes, the copy bypasses the caches: it is for blocks that another core or process reads
// next.
std::uint32_t copy_crc32c(void* to,
                          const void* from,
                          std::size_t size,
                          std::uint32_t crc = 0) noexcept;

}  // namespace troupe::core
