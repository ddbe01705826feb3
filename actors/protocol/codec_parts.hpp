// Pieces that the codecs share: tickets, arrays of numbers, texts. Used by this folder's sources alone.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "actors/protocol/codec.hpp"

namespace troupe::actors {

static_assert(sizeof(float) == 4, "records hold 32-bit floats");

template <class T>
capnp::Data::Reader bytes_of(const std::vector<T>& values) {
  static_assert(std::is_arithmetic_v<T>);
  return {reinterpret_cast<const capnp::byte*>(values.data()), values.size() * sizeof(T)};
}

// Error: kData when the bytes are not a whole number of elements.
template <class T>
core::Result<std::vector<T>> numbers_of(capnp::Data::Reader bytes, const char* field) {
  if (bytes.size() % sizeof(T) != 0) {
    return core::fail(core::ErrorCode::kData,
                      std::string("field ") + field + " holds a broken array");
  }
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.begin(), bytes.size());
  return values;
}

inline std::string text_of(capnp::Text::Reader text) { return {text.begin(), text.size()}; }

void write_ticket(const core::Ticket& ticket, schema::Ticket::Builder out);
core::Ticket read_ticket(schema::Ticket::Reader in);
void write_tickets(const std::vector<core::Ticket>& tickets,
                   capnp::List<schema::Ticket>::Builder out);
std::vector<core::Ticket> read_tickets(capnp::List<schema::Ticket>::Reader in);

// The size of a list as the builders want it.
template <class Container>
unsigned count_of(const Container& container) {
  return static_cast<unsigned>(container.size());
}

}  // namespace troupe::actors
