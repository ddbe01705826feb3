#include "runtime/weights/source_streams.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/core/texts.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace troupe::weights {
namespace {

constexpr int kGlance_ms = 100;  // between looks whether the subscriber was closed

}  // namespace

SourceStreams::SourceStreams(Snapshot& into, std::uint32_t first, std::string what)
    : into_(into), first_(first), what_(std::move(what)) {}

void SourceStreams::add(const net::OwnedFd& socket) {
  Stream stream;
  stream.socket = &socket;
  streams_.push_back(stream);
}

core::Result<void> SourceStreams::receive(net::Patience patience,
                                          const std::function<void()>& more) {
  const auto of = static_cast<std::uint32_t>(streams_.size());
  for (std::uint32_t number = 0; number < of; ++number) {
    const Share share{number, of};
    streams_[number].bucket = share.bucket(share.before(first_));
  }
  while (!std::all_of(streams_.begin(), streams_.end(),
                      [this](const Stream& one) { return is_over(one); })) {
    bool moved = false;
    for (Stream& one : streams_) {
      if (is_over(one)) continue;
      TROUPE_TRY_ASSIGN(took, take(one));
      moved = moved || took;
    }
    if (say_ready()) more();
    if (!moved) TROUPE_TRY(wait(patience));
  }
  return {};
}

// All below the first bucket that some source has still to bring.
bool SourceStreams::say_ready() {
  std::uint32_t ready = into_.shape().buckets;
  for (const Stream& one : streams_)
    ready = std::min(ready, one.bucket);
  if (ready == into_.ready()) return false;
  into_.set_ready(ready);
  return true;
}

core::Result<bool> SourceStreams::take(Stream& one) {
  const std::size_t size = into_.shape().size_of(one.bucket);
  char* const into = into_.bucket(one.bucket) + one.done;
  const std::size_t most = std::min(size - one.done, kPiece_bytes);
  const ssize_t n = ::recv(one.socket->get(), into, most, MSG_DONTWAIT);
  if (n < 0 && net::would_block()) return false;
  if (n <= 0) {
    return fail(ErrorCode::kPeerLost, name_of(one) + ": the other side closed after " +
                                          std::to_string(one.done) + " of " + std::to_string(size) +
                                          " bytes");
  }
  one.crc = core::crc32c(into, static_cast<std::size_t>(n), one.crc);
  one.done += static_cast<std::size_t>(n);
  if (one.done == size) TROUPE_TRY(end_bucket(one));
  return true;
}

core::Result<void> SourceStreams::end_bucket(Stream& one) {
  const SnapshotShape& shape = into_.shape();
  if (one.crc != into_.table()[one.bucket])
    return wrong_bucket(into_.version(), one.bucket, shape.buckets);
  one.bucket += static_cast<std::uint32_t>(streams_.size());
  one.done = 0;
  one.crc = 0;
  return {};
}

std::string SourceStreams::name_of(const Stream& one) const {
  std::string name = what_ + ", bucket " + std::to_string(one.bucket);
  if (streams_.size() > 1) name += " of source " + std::to_string(one.bucket % streams_.size());
  return name;
}

// Waits until a byte has come from any source that still has buckets to send.
core::Result<void> SourceStreams::wait(net::Patience patience) const {
  std::vector<pollfd> entries;
  const Stream* slow = nullptr;
  for (const Stream& one : streams_) {
    if (is_over(one)) continue;
    entries.push_back({one.socket->get(), POLLIN, 0});
    if (slow == nullptr || one.bucket < slow->bucket) slow = &one;
  }
  const core::TimePoint until = std::chrono::steady_clock::now() + patience.span;
  for (;;) {
    if (patience.given_up != nullptr && *patience.given_up)
      return fail(ErrorCode::kClosed, what_ + ": given up here");
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const auto ms = std::clamp<std::int64_t>(left.count(), 0, kGlance_ms);
    if (::poll(entries.data(), entries.size(), static_cast<int>(ms)) > 0) return {};
    if (std::chrono::steady_clock::now() < until) continue;
    const std::string limit =
        core::printed("%.3g s", std::chrono::duration<double>(patience.span).count());
    return fail(ErrorCode::kDeadline, name_of(*slow) + ": nothing moved for " + limit + " after " +
                                          std::to_string(slow->done) + " bytes");
  }
}

}  // namespace troupe::weights
