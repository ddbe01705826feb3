// One fetch of a version by streams of bytes: from the publisher and the other sources of the
// image, or from the relays to which it sends this receiver. When a relay fails (it ends, is
// silent, or gives wrong bytes), the fetch asks the publisher again and goes on after the last good
// bucket. Used on the subscriber's fetching thread, for one fetch.
#pragma once

#include "runtime/weights/publisher_link.hpp"
#include "runtime/weights/source_streams.hpp"

namespace troupe::weights {

class StreamFetch {
 public:
  explicit StreamFetch(const StreamContext& context) : context_(context) {}
  StreamFetch(const StreamFetch&) = delete;
  StreamFetch& operator=(const StreamFetch&) = delete;

  // Asks on the connection to the publisher; `sockets` outlive the fetch. Error kPeerLost: it has
  // ended.
  core::Result<void> ask(StreamSockets& sockets) {
    sockets_ = &sockets;
    return publisher_.ask(sockets.publisher);
  }
  // Receives what the answer gives. Afterwards the connections may be used for another fetch, if
  // `publisher_is_there`.
  core::Result<ArrivedImage> receive();
  bool publisher_is_there() const { return !publisher_.is_lost(); }

 private:
  bool is_set_aside(std::uint32_t relay) const;
  core::Result<void> take_from_sources(const Answer& answer);
  core::Result<void> ask_source(std::uint32_t number, const Answer& granted);
  core::Result<void> open_source(std::uint32_t number, const Answer& granted);
  core::Result<void> hear_source(std::uint32_t number, const Answer& granted);
  ReadBytes reader_of(const net::OwnedFd& socket) const;

  const StreamContext context_;
  PartialSnapshot partial_{context_};
  PublisherLink publisher_{context_, partial_};
  StreamSockets* sockets_ = nullptr;
};

}  // namespace troupe::weights
