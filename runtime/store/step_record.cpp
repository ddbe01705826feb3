#include "runtime/store/step_record.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/core/little_endian.hpp"

namespace troupe::store {
namespace {

constexpr std::size_t kFrame_bytes = 8;

}  // namespace

void add_record(std::string& out, std::string_view record) {
  out += core::little_endian(record.size(), 4);
  out += core::little_endian(core::text_crc32c(record), 4);
  out += record;
}

std::optional<std::string_view> next_record(std::string_view& rest) {
  if (rest.size() < kFrame_bytes) return std::nullopt;
  const std::uint64_t length = core::from_little_endian(rest, 4);
  const std::uint64_t crc = core::from_little_endian(rest.substr(4), 4);
  if (rest.size() - kFrame_bytes < length) return std::nullopt;
  const std::string_view record = rest.substr(kFrame_bytes, length);
  if (core::text_crc32c(record) != crc) return std::nullopt;
  rest.remove_prefix(kFrame_bytes + length);
  return record;
}

}  // namespace troupe::store
