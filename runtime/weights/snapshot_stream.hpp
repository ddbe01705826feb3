// The stream of one snapshot to one receiver: which of its bytes come next, and how far the
// receiver is. Never blocks. Used on the server's thread while the snapshot is leased.
#pragma once

#include "runtime/net/socket.hpp"
#include "runtime/weights/snapshot.hpp"

#include <atomic>
#include <cstdint>

namespace troupe::weights {

class SnapshotStream {
 public:
  // kStarved: all that is ready has been sent. kLost: the connection has ended.
  enum class State { kFlows, kStarved, kDone, kLost };

  SnapshotStream() = default;
  // Leaves out the buckets below `first`.
  SnapshotStream(const Snapshot& snapshot, std::uint32_t first)
      : snapshot_(&snapshot), first_(first) {}

  // Sends what the system takes, at most a turn; adds it to `counted`.
  State send(const net::OwnedFd& socket, std::atomic<std::uint64_t>& counted);

  std::uint64_t sent() const { return sent_; }  // bytes that the system has accepted
  bool is_starved() const { return starved_; }
  // Whether the receiver has taken bytes since this was last asked.
  bool has_moved(const net::OwnedFd& socket);
  // How many buckets of the image the receiver has, if all sources go at this one's pace; 0: not
  // known.
  std::uint32_t buckets_taken(const net::OwnedFd& socket) const;

 private:
  std::uint64_t taken(const net::OwnedFd& socket) const;

  const Snapshot* snapshot_ = nullptr;
  std::uint32_t first_ = 0;
  std::uint64_t at_ = 0;  // the next byte of the snapshot to send
  std::uint64_t sent_ = 0;
  std::uint64_t taken_ = 0;  // of these, bytes that the receiver had taken at the last check
  bool starved_ = false;
};

}  // namespace troupe::weights
