// Encodes arrays in the .npy format and in base64. A .npy file (numpy.lib.format) has a magic
// string, a version, the length of the header, the header (a Python dict, padded with spaces so
// that the data begins at a multiple of 64 bytes), and the numbers in little-endian order.
#include "runtime/dialects/npy_text.hpp"

#include "runtime/core/base64.hpp"
#include "runtime/core/check.hpp"

namespace troupe::dialects {

std::string npy_text(std::span<const std::uint16_t> values,
                     const std::array<std::size_t, 3>& shape) {
  TROUPE_CHECK(values.size() == shape[0] * shape[1] * shape[2], "numbers of another shape");
  constexpr std::size_t kBefore_bytes = 10, kAlign_bytes = 64;
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (" +
                       std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + ", " +
                       std::to_string(shape[2]) + "), }";
  const std::size_t used = kBefore_bytes + header.size() + 1;
  header.append((kAlign_bytes - used % kAlign_bytes) % kAlign_bytes, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 255u);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.reserve(bytes.size() + 4 * values.size());
  for (const std::uint16_t value : values) {
    bytes += static_cast<char>(value & 255u);
    bytes += static_cast<char>(value >> 8);
    bytes.append(2, '\0');
  }
  return core::base64(bytes);
}

}  // namespace troupe::dialects
