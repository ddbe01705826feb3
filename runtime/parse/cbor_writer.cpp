#include "runtime/parse/cbor_writer.hpp"

#include <cbor.h>

#include <array>

namespace troupe::parse {
namespace {

constexpr std::size_t kHead_max = 9;  // bytes before a value, or of a number

// Appends what one of libcbor's encoders writes.
template <class Encode, class... Value>
void add(std::string& out, Encode encode, Value... value) {
  std::array<unsigned char, kHead_max> head;
  const std::size_t size = encode(value..., head.data(), head.size());
  out.append(reinterpret_cast<const char*>(head.data()), size);
}

}  // namespace

void CborWriter::map(std::size_t pairs) {
  add(out_, cbor_encode_map_start, pairs);
}

void CborWriter::list(std::size_t items) {
  add(out_, cbor_encode_array_start, items);
}

void CborWriter::number(std::uint64_t value) {
  add(out_, cbor_encode_uint, value);
}

void CborWriter::real(double value) {
  add(out_, cbor_encode_double, value);
}

void CborWriter::boolean(bool value) {
  add(out_, cbor_encode_bool, value);
}

void CborWriter::null() {
  add(out_, cbor_encode_null);
}

void CborWriter::text(std::string_view value) {
  add(out_, cbor_encode_string_start, value.size());
  out_ += value;
}

void CborWriter::bytes(std::size_t length) {
  add(out_, cbor_encode_bytestring_start, length);
}

void CborWriter::append(std::span<const std::byte> part) {
  out_.append(reinterpret_cast<const char*>(part.data()), part.size());
}

}  // namespace troupe::parse
