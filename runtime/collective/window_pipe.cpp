#include "runtime/collective/window_pipe.hpp"

#include "runtime/collective/limits.hpp"
#include "runtime/collective/rank_protocol.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <new>

namespace troupe::collective {
namespace {

using core::SharedMemory;

constexpr std::uint64_t kHead_bytes = 4096;
static_assert(sizeof(RingHead) <= kHead_bytes);
// Copied before the other side hears of it: small enough that both sides copy at the same time.
constexpr std::uint64_t kPieces = 8;  // of a ring

}  // namespace

char* WindowPipe::Ring::data() const {
  return memory.data() + kHead_bytes;
}

core::Result<std::unique_ptr<WindowPipe>> WindowPipe::exchange(const net::OwnedFd& control,
                                                               std::uint64_t bytes,
                                                               net::Patience patience,
                                                               const std::string& peer) {
  const std::string what = "the window of " + peer;
  Ring out, in;
  TROUPE_TRY_SET(out.memory, SharedMemory::create("a window to " + peer, kHead_bytes + bytes,
                                                  SharedMemory::Others::kWrite));
  out.bytes = bytes;
  new (out.memory.data()) RingHead;
  WindowOffer offer;
  offer.bytes = bytes;
  if (!net::send_with_fd(control, &offer, sizeof offer, out.memory.fd()))
    return core::fail(ErrorCode::kPeerLost, peer + " closed before it got its window");
  net::OwnedFd passed;
  TROUPE_TRY(net::receive_with_fd(control, &offer, sizeof offer, passed, patience, what));
  if (offer.magic != kRankMagic || !passed || offer.bytes == 0 ||
      offer.bytes > limits::kRankWindow_bytes_max)
    return core::fail(ErrorCode::kData, what + " is not one");
  in.bytes = offer.bytes;
  TROUPE_TRY_SET(in.memory, SharedMemory::open(what, passed, kHead_bytes + offer.bytes,
                                               SharedMemory::Others::kWrite));
  return std::unique_ptr<WindowPipe>(new WindowPipe(std::move(out), std::move(in), control.get()));
}

// The other side either sees the new position before it sleeps, or is seen sleeping here: both
// sides write before they read, in one order (seq_cst).
void WindowPipe::wake(std::atomic<std::uint32_t>& sleeps) const {
  if (sleeps.load() == 0 || sleeps.exchange(0) == 0) return;
  (void)!::send(control_, &kWake, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::size_t WindowPipe::write(core::Memory& memory, const void* from, std::size_t bytes) {
  const std::uint64_t unread = out_.at - out_.head().taken.load(std::memory_order_acquire);
  broken_ = broken_ || unread > out_.bytes;
  if (broken_ || unread == out_.bytes) return 0;
  const std::uint64_t begin = out_.at % out_.bytes;
  const std::uint64_t piece = std::max<std::uint64_t>(out_.bytes / kPieces, 1);
  const std::uint64_t size = std::min({bytes, out_.bytes - unread, out_.bytes - begin, piece});
  memory.download(out_.data() + begin, from, size);
  out_.at += size;
  out_.head().written.store(out_.at);
  wake(out_.head().reader_sleeps);
  return size;
}

std::size_t WindowPipe::read(core::Memory& memory, void* to, std::size_t bytes) {
  const std::uint64_t unread = in_.head().written.load(std::memory_order_acquire) - in_.at;
  broken_ = broken_ || unread > in_.bytes;
  if (broken_ || unread == 0) return 0;
  const std::uint64_t begin = in_.at % in_.bytes;
  const std::uint64_t piece = std::max<std::uint64_t>(in_.bytes / kPieces, 1);
  const std::uint64_t size = std::min({bytes, unread, in_.bytes - begin, piece});
  memory.upload(to, in_.data() + begin, size);
  in_.at += size;
  in_.head().taken.store(in_.at);
  wake(in_.head().writer_sleeps);
  return size;
}

bool WindowPipe::ready(bool reads, bool writes) const {
  if (broken_) return false;
  return (reads && in_.head().written.load() != in_.at) ||
         (writes && out_.at - out_.head().taken.load() < out_.bytes);
}

bool WindowPipe::arm(bool reads, bool writes, short&) {
  if (reads) in_.head().reader_sleeps.store(1);
  if (writes) out_.head().writer_sleeps.store(1);
  return !ready(reads, writes);
}

void WindowPipe::disarm() {
  in_.head().reader_sleeps.store(0, std::memory_order_relaxed);
  out_.head().writer_sleeps.store(0, std::memory_order_relaxed);
}

}  // namespace troupe::collective
