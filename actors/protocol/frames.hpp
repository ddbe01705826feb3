// Encodes messages into frames and decodes them, for every message of messages*.hpp that has an arm
// in schema/envelope.capnp. Pure functions; codec.cpp, the only file of actors/ that uses Cap'n
// Proto, defines them.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/wire/frame.hpp"
#include "runtime/wire/header.hpp"

namespace troupe::actors {

// Error: kInvalidArgument when the message does not fit a frame.
template <class Message>
core::Result<wire::Frame> to_frame(const wire::Header& header, const Message& message);

// Errors: kUnsupported when the frame holds another message; kData when it is malformed, an array
// is not a whole number of elements, or the message does not pass its own check.
template <class Message>
core::Result<Message> from_frame(wire::Frame frame);

}  // namespace troupe::actors
