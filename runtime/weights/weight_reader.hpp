// One connection of a weight server: what its receiver has asked for, what it holds or is being
// sent, and until when it must have done what comes next. The server decides, this carries it out.
// Never blocks. Used on the server's thread.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/weights/reader_lease.hpp"
#include "runtime/weights/snapshot_stream.hpp"

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

namespace troupe::weights {

class WeightReader {
 public:
  // kHello: a stranger. kIdle: it has had a stream and may ask again. kHeld: it holds shared or
  // device memory, or has still to confirm a stream.
  // kSentOn: it gets its version from a relay, and reports how far it is.
  enum class State { kHello, kIdle, kQueued, kStream, kHeld, kSentOn };
  // The outcome of a step, for the server. kAsks: its hello is complete. kProgress: it has
  // `buckets_reported`. kDone: it has what it asked for. kCut: it left or stood still before. After
  // the last three the connection must end.
  enum class Outcome { kStays, kAsks, kProgress, kDone, kCut, kRefused, kLeaves };

  // `way`: what its listener serves.
  WeightReader(net::OwnedFd socket, Wants way);

  const net::OwnedFd& socket() const { return socket_; }
  Wants way() const { return way_; }
  State state() const { return state_; }
  core::TimePoint until() const { return until_; }  // never, while it is idle or holds memory
  const Hello& hello() const { return hello_; }     // the latest, once it is complete
  std::uint32_t number() const { return hello_.place.number; }
  std::uint64_t turn() const { return turn_; }
  const ReaderLease& lease() const { return lease_; }
  std::uint32_t buckets_reported() const { return report_.buckets; }
  // Buckets taken from its stream; 0 if there is none, or it is not known.
  std::uint32_t buckets_taken() const;

  pollfd awaited() const;
  // Something has come, or may be sent. `streamed` counts the bytes that the system takes.
  Outcome go_on(short events, std::atomic<std::uint64_t>& streamed);
  // `until` has passed. It stays if it waits in the queue, holds memory that is no longer kept for
  // it, or has taken bytes of its stream since the last check.
  Outcome go_on_late();

  // Waits for its turn among all requests.
  void queue(std::uint64_t turn);
  Answer take_lease(ImageShelves::Shelf& shelf, bool keep) {
    return lease_.take(shelf, hello_, keep);
  }
  void end_lease() { lease_.end(); }
  bool say(const void* bytes, std::size_t size);  // false: not all was sent
  // Gives what is leased: a descriptor, with the sockets of further `sources`, or the place on a
  // device.
  bool lend(Answer answer, std::span<const std::string> sources);
  Outcome begin_stream(Answer answer, std::atomic<std::uint64_t>& streamed);
  // Goes on with a stream that waits for more buckets: they may be ready, or will never be.
  Outcome resume(std::atomic<std::uint64_t>& streamed);
  // Sends the receiver on to a relay; it then holds no snapshot.
  void send_on(core::Version version, const RelayPlace& relay);
  // Until its next hello; without an end, if it owes none.
  void rest(core::TimePoint until = core::TimePoint::max());
  // Tells it that its snapshot is needed. The receiver of a stream sees its connection reset. A
  // receiver of shared or device memory gets a byte: it may read on, but throws away what it made
  // (ImageIntake).
  void take_back();

 private:
  Outcome read_hello();
  Outcome read_report();
  Outcome confirm();
  Outcome stream(std::atomic<std::uint64_t>& streamed);

  net::OwnedFd socket_;
  Wants way_;
  State state_ = State::kHello;
  core::TimePoint until_;
  Hello hello_;
  std::size_t hello_bytes_ = 0;
  std::uint64_t turn_ = 0;
  ReaderLease lease_;
  SnapshotStream stream_;
  Report report_;
  std::size_t report_bytes_ = 0;
};

}  // namespace troupe::weights
