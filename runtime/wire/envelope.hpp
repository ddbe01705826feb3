// Builds and reads envelopes. Only this room and the codec of the roles' messages (actors/protocol)
// use Cap'n Proto; its exceptions become errors here. A Cap'n Proto reader must not outlive the
// Incoming that it came from.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/wire/frame.hpp"
#include "runtime/wire/header.hpp"
#include "schema/envelope.capnp.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace troupe::wire {

// Builds a message: set one body, then call `finish`.
class Outgoing {
 public:
  explicit Outgoing(const Header& header);

  schema::Envelope::Builder envelope() { return root_; }

  // Error: kInvalidArgument if it is longer than kMessage_bytes_max.
  core::Result<Frame> finish();

 private:
  std::unique_ptr<capnp::MallocMessageBuilder> message_;
  schema::Envelope::Builder root_;
};

// kData with the text of the library's exception.
core::Failure translate(const kj::Exception& thrown);

// A received message. Owns its frame.
class Incoming {
 public:
  // Errors: kData (malformed), kUnsupported (another protocol version).
  static core::Result<Incoming> open(Frame frame);

  const Header& header() const noexcept { return header_; }
  const Frame& frame() const noexcept { return frame_; }

  // Calls `reader(envelope)`, which returns a Result, and turns exceptions that Cap'n Proto throws
  // on broken contents (pointers, limits, types) into kData.
  template <class Reader>
  std::invoke_result_t<Reader&, schema::Envelope::Reader> read(Reader reader) const {
    try {
      return reader(message_->getRoot<schema::Envelope>());
    } catch (const kj::Exception& thrown) {
      return translate(thrown);
    }
  }

 private:
  explicit Incoming(Frame frame);

  Frame frame_;
  std::unique_ptr<capnp::FlatArrayMessageReader> message_;
  Header header_;
};

}  // namespace troupe::wire
