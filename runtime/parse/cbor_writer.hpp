// Writes CBOR (RFC 8949) item by item at the end of a string: numbers in their shortest form,
// reals as 8 bytes, maps and lists with their lengths in front. The caller writes as many items as
// it announces. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::parse {

class CborWriter {
 public:
  explicit CborWriter(std::string& out) : out_(out) {}

  void map(std::size_t pairs);  // each a text and a value
  void list(std::size_t items);
  void number(std::uint64_t value);
  void real(double value);
  void boolean(bool value);
  void null();
  void text(std::string_view value);
  // A byte string of this length, which `append` fills part by part.
  void bytes(std::size_t length);
  void append(std::span<const std::byte> part);

 private:
  std::string& out_;
};

}  // namespace troupe::parse
