// One message value to one frame, and back. Pure functions.
#pragma once

#include "actors/protocol/codec.hpp"
#include "runtime/wire/envelope.hpp"

namespace troupe::actors {

// Error: kInvalidArgument when the message does not fit a frame.
template <class Message>
core::Result<wire::Frame> to_frame(const wire::Header& header, const Message& message) {
  try {
    wire::Outgoing out(header);
    Codec<Message>::write(message, out.envelope());
    return out.finish();
  } catch (const kj::Exception& thrown) {
    return wire::translate(thrown);
  }
}

// Error: kUnsupported when the body is another one, kData when it is malformed.
template <class Message>
core::Result<Message> read_body(schema::Envelope::Reader envelope) {
  if (!Codec<Message>::is(envelope)) {
    return core::fail(core::ErrorCode::kUnsupported, "an answer of another kind than asked for");
  }
  return Codec<Message>::read(envelope);
}

template <class Message>
core::Result<Message> from_frame(wire::Frame frame) {
  TROUPE_TRY_ASSIGN(incoming, wire::Incoming::open(std::move(frame)));
  return incoming.read(read_body<Message>);
}

}  // namespace troupe::actors
