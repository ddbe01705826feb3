// Reads and writes the small frame bodies that hosts and transports exchange. Private to
// runtime/wire. Their fields follow the schema (layout.hpp). Pure functions.
#pragma once

#include "runtime/core/check.hpp"
#include "runtime/wire/envelope.hpp"
#include "runtime/wire/layout.hpp"

#include <string>
#include <string_view>

namespace troupe::wire {

using EnvelopeReader = schema::Envelope::Reader;
using EnvelopeBuilder = schema::Envelope::Builder;

inline std::string string_of(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

// The longest prefix of a UTF-8 text with at most `bytes_max` bytes that ends with a whole
// character.
inline std::string_view cut(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return text.substr(0, end);
}

// Finishes a frame whose body is known to fit.
inline Frame finished(Outgoing& outgoing) {
  auto frame = outgoing.finish();
  TROUPE_CHECK(frame.has_value(), "the body fits a frame");
  return std::move(frame).value();
}

// The frame of a body that `init` creates and whose fields come from `value`.
template <class Builder, class Value>
Frame frame_of(const Header& header, Builder (EnvelopeBuilder::*init)(), const Value& value) {
  Outgoing outgoing(header);
  put_struct(value, (outgoing.envelope().*init)());
  return finished(outgoing);
}

// Opens a frame and returns the result of `reader(envelope)`. Errors: those of Incoming.
template <class Value, class Reader>
core::Result<Value> read_frame(const Frame& frame, Reader reader) {
  TROUPE_TRY_ASSIGN(incoming, Incoming::open(frame));
  return incoming.read(
      [&](EnvelopeReader envelope) -> core::Result<Value> { return reader(envelope); });
}

// Reads the body that `get` returns. Errors: kData with the message `otherwise` if `is` is false
// for the envelope; those of Incoming.
template <class Value, class Reader>
core::Result<Value> body_of(const Frame& frame,
                            bool (EnvelopeReader::*is)() const,
                            Reader (EnvelopeReader::*get)() const,
                            const char* otherwise) {
  return read_frame<Value>(frame, [&](EnvelopeReader envelope) -> core::Result<Value> {
    if (!(envelope.*is)()) return core::fail(core::ErrorCode::kData, otherwise);
    Value value;
    TROUPE_TRY(take_struct(true, (envelope.*get)(), value));
    return value;
  });
}

}  // namespace troupe::wire
