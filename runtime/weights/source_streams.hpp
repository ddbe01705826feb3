// The streams of one version from all of its sources at once: each brings the buckets of its share
// in their order, and whatever has come is taken, so a slow source delays only its own buckets.
// Used on the subscriber's fetching thread, for one fetch.
#pragma once

#include "runtime/net/socket.hpp"
#include "runtime/weights/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::weights {

// Size of the pieces that are received and checked, small enough to stay in the cache.
inline constexpr std::size_t kPiece_bytes = 256 << 10;

// Connections of a receiver with the sources of an image.
struct StreamSockets {
  net::OwnedFd publisher;            // source 0
  std::vector<net::OwnedFd> others;  // source 1 + i; empty: not connected
};

class SourceStreams {
 public:
  // `into` is whole, has begun, and has the buckets below `first`. `what` names the version in
  // errors. All outlive the object.
  SourceStreams(Snapshot& into, std::uint32_t first, std::string what);

  // Source 0 first, then the others by number. Its head and checksums have been read.
  void add(const net::OwnedFd& socket);

  // Receives and checks all buckets; calls `more` when further ones are ready in the snapshot.
  // Errors: kData (a wrong checksum), kPeerLost (a source closed), kDeadline (no byte of any source
  // came for the patience), kClosed.
  core::Result<void> receive(net::Patience patience, const std::function<void()>& more);

 private:
  struct Stream {
    const net::OwnedFd* socket = nullptr;
    std::uint32_t bucket = 0;  // the one arriving now
    std::size_t done = 0;      // bytes of it
    std::uint32_t crc = 0;     // of these
  };
  bool is_over(const Stream& one) const { return one.bucket >= into_.shape().buckets; }
  // Takes what is there; false: nothing was.
  core::Result<bool> take(Stream& one);
  core::Result<void> end_bucket(Stream& one);
  core::Result<void> wait(net::Patience patience) const;
  std::string name_of(const Stream& one) const;
  bool say_ready();

  Snapshot& into_;
  const std::uint32_t first_;
  const std::string what_;
  std::vector<Stream> streams_;
};

}  // namespace troupe::weights
