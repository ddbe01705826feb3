#include "runtime/weights/snapshot_stream.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace troupe::weights {
namespace {

constexpr std::size_t kSend_bytes = 1 << 20;
constexpr std::size_t kTurn_bytes = 4 << 20;  // sent on one stream before others get their turn

}  // namespace

// Uses send, because with sendfile the receiver copies from pages that are in no cache, which takes
// half as long again.
SnapshotStream::State SnapshotStream::send(const net::OwnedFd& socket,
                                           std::atomic<std::uint64_t>& counted) {
  const std::uint64_t image = snapshot_->shape().data_offset();
  starved_ = false;
  const std::uint64_t ready = snapshot_->ready_bytes();
  for (std::size_t turn = 0; turn < kTurn_bytes && at_ < ready;) {
    const std::uint64_t end = at_ < image ? image : ready;
    const std::size_t most = std::min<std::uint64_t>(end - at_, kSend_bytes);
    const ssize_t n =
        ::send(socket.get(), snapshot_->bytes() + at_, most, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && net::would_block()) return State::kFlows;
    if (n <= 0) return State::kLost;
    at_ += static_cast<std::uint64_t>(n);
    sent_ += static_cast<std::uint64_t>(n);
    counted += static_cast<std::uint64_t>(n);
    turn += static_cast<std::size_t>(n);
    if (at_ == image) at_ += snapshot_->share().before(first_) * snapshot_->shape().bucket_bytes;
  }
  if (at_ >= snapshot_->size()) return State::kDone;
  starved_ = at_ >= ready;
  return starved_ ? State::kStarved : State::kFlows;
}

// On a slow link it takes long until enough of the send buffer is free for poll to report it, so
// count the bytes that have left the buffer. 0 if the system does not say.
std::uint64_t SnapshotStream::taken(const net::OwnedFd& socket) const {
  int unsent = 0;
  const bool known = ::ioctl(socket.get(), SIOCOUTQ, &unsent) == 0;
  return known ? sent_ - static_cast<std::uint64_t>(unsent) : 0;
}

bool SnapshotStream::has_moved(const net::OwnedFd& socket) {
  const std::uint64_t before = taken_;
  taken_ = std::max(before, taken(socket));
  return taken_ > before;
}

std::uint32_t SnapshotStream::buckets_taken(const net::OwnedFd& socket) const {
  const SnapshotShape& shape = snapshot_->shape();
  const std::uint64_t bytes = taken(socket);
  if (bytes <= shape.data_offset()) return 0;
  const std::uint64_t more =
      (bytes - shape.data_offset()) / shape.bucket_bytes * snapshot_->share().of;
  return std::min(first_ + static_cast<std::uint32_t>(more), shape.buckets);
}

}  // namespace troupe::weights
