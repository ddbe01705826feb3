// Protocol Buffers on the wire: each field is a key (field number << 3 | wire type), then by wire
// type a varint (0), 8 bytes (1), a length and as many bytes (2), or 4 bytes (5).
#include "runtime/observe/event_proto.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/core/little_endian.hpp"

#include <bit>

namespace troupe::observe {
namespace {

// TensorBoard stores CRCs masked: the CRC of data that is followed by its own CRC is a constant.
constexpr std::uint32_t masked_crc(std::uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

class Message {
 public:
  Message& varint(int field, std::uint64_t value) { return key(field, 0).raw_varint(value); }
  Message& fixed64(int field, double value) {
    return key(field, 1).raw(core::little_endian(std::bit_cast<std::uint64_t>(value), 8));
  }
  Message& fixed32(int field, float value) {
    return key(field, 5).raw(core::little_endian(std::bit_cast<std::uint32_t>(value), 4));
  }
  Message& bytes(int field, std::string_view value) {
    return key(field, 2).raw_varint(value.size()).raw(value);
  }
  Message& message(int field, const Message& value) { return bytes(field, value.out_); }
  const std::string& text() const { return out_; }

 private:
  Message& key(int field, unsigned type) {
    return raw_varint(static_cast<std::uint64_t>(field) << 3 | type);
  }
  Message& raw_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      out_ += static_cast<char>((value & 0x7F) | 0x80);
    out_ += static_cast<char>(value);
    return *this;
  }
  Message& raw(std::string_view bytes) {
    out_ += bytes;
    return *this;
  }
  std::string out_;
};

// Event: 1 wall_time, 2 step, 3 file_version, 5 summary, 7 session_log.
Message event(double wall_time_s, std::int64_t step) {
  Message out;
  out.fixed64(1, wall_time_s);
  if (step != 0) out.varint(2, static_cast<std::uint64_t>(step));
  return out;
}

}  // namespace

std::string version_event(double wall_time_s) {
  return event(wall_time_s, 0).bytes(3, "brain.Event:2").text();
}

std::string session_start_event(double wall_time_s, std::int64_t step) {
  constexpr std::uint64_t kStart = 1;  // SessionLog: 1 status
  return event(wall_time_s, step).message(7, Message().varint(1, kStart)).text();
}

std::string scalars_event(double wall_time_s,
                          std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& values) {
  Message summary;  // Summary: 1 value { 1 tag, 2 simple_value }
  for (const auto& [name, value] : values)
    summary.message(1, Message().bytes(1, name).fixed32(2, static_cast<float>(value)));
  return event(wall_time_s, step).message(5, summary).text();
}

std::string framed(std::string_view payload) {
  const std::string length = core::little_endian(payload.size(), 8);
  std::string out = length;
  out += core::little_endian(masked_crc(core::text_crc32c(length)), 4);
  out += payload;
  out += core::little_endian(masked_crc(core::text_crc32c(payload)), 4);
  return out;
}

}  // namespace troupe::observe
