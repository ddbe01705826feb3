// One fetch of a version by streams of bytes: from the publisher and the other sources of the
// image, or from the relays to which it sends this receiver. Buckets come into a snapshot of the
// receiver's own relay, which passes them on as they come. When a relay fails (it ends, is silent,
// or gives wrong bytes), the fetch asks the publisher again and goes on after the last good bucket.
// Used on the subscriber's fetching thread, for one fetch.
#pragma once

#include "runtime/weights/opened_snapshots.hpp"
#include "runtime/weights/relay.hpp"
#include "runtime/weights/source_streams.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::weights {

// What a fetch uses of its subscriber; all of it outlives the fetch.
struct StreamContext {
  const SnapshotShape& expected;
  Hello hello;  // complete but for what changes from one request to the next
  std::string public_key;
  Relay& relay;
  const RelayOptions& options;
  OpenedSnapshots& opened;
  std::vector<std::uint32_t>& set_aside;  // relays that gave wrong bytes; the fetch adds to them
  net::Patience patience;
  std::string source;                                   // names the publisher in errors
  std::function<core::Result<net::OwnedFd>()> connect;  // to the publisher, once more
};

class StreamFetch {
 public:
  explicit StreamFetch(const StreamContext& context) : context_(context) {}
  ~StreamFetch();
  StreamFetch(const StreamFetch&) = delete;
  StreamFetch& operator=(const StreamFetch&) = delete;

  // Asks on the connection to the publisher; `sockets` outlive the fetch. Error kPeerLost: it has
  // ended.
  core::Result<void> ask(StreamSockets& sockets);
  // Receives what the answer gives. Afterwards the connections may be used for another fetch, if
  // `publisher_is_there`.
  core::Result<ArrivedImage> receive();
  bool publisher_is_there() const { return !publisher_lost_; }

 private:
  struct Direction {
    Answer answer;
    RelayPlace place;  // of kAtRelay
  };
  core::Result<Direction> ask_publisher();
  core::Result<void> ask_again(RelayFault fault);
  core::Result<ArrivedImage> arrived();
  void report(Report::Kind kind);

  // From a relay; errors say how it failed.
  core::Result<void> take_from_relay();
  core::Result<void> take_stream(const net::OwnedFd& socket, core::Version at_least);
  core::Result<void> take_memory(const net::OwnedFd& socket, core::Version at_least);
  Hello hello_for(core::Version at_least, Wants wants) const;
  core::Result<void> say(const net::OwnedFd& socket, const Hello& hello);
  core::Result<Answer> hear_answer(const net::OwnedFd& socket, const std::string& source);

  // From the publisher and the other sources.
  core::Result<void> take_from_sources(const Answer& answer);
  core::Result<void> ask_source(std::uint32_t number, const Answer& granted);
  core::Result<void> open_source(std::uint32_t number, const Answer& granted);
  core::Result<void> hear_source(const net::OwnedFd& socket, const Answer& granted, Share share);

  core::Result<void> begin_snapshot(const net::OwnedFd& socket, const Answer& answer, Share share);
  core::Result<void> receive_buckets(const net::OwnedFd& socket, std::uint32_t first);
  core::Result<void> receive_bucket(const net::OwnedFd& socket, std::uint32_t index);
  core::Result<void> begin(const SnapshotHead& head, const ArrivedImage& announced);
  // Reads all bytes; from a relay, asks the publisher when none come.
  core::Result<void> read(const net::OwnedFd& socket,
                          void* into,
                          std::size_t size,
                          const std::string& what);
  core::Result<void> review(RelayFault fault);
  core::Result<void> wait_for_relay(const net::OwnedFd& socket, const std::string& what);

  StreamContext context_;
  StreamSockets* sockets_ = nullptr;
  bool publisher_lost_ = false;
  std::optional<Direction> direction_;  // the publisher's last answer
  bool redirected_ = false;             // that answer came while a relay was silent
  std::uint32_t parent_ = 0;            // the relay that feeds this fetch; 0: the publisher
  std::shared_ptr<Snapshot> snapshot_;
  std::optional<ArrivedImage> mapped_;  // instead of it, from a relay of this host
  core::TimePoint reported_, reviewed_;
};

}  // namespace troupe::weights
