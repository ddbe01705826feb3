// The CRC of text, by the function of the core.
#include "runtime/store/crc32c.hpp"

#include "runtime/core/crc32c.hpp"

namespace troupe::store {

std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc) noexcept {
  return core::crc32c(bytes.data(), bytes.size(), crc);
}

}  // namespace troupe::store
