#include "runtime/weights/weight_server.hpp"

#include "runtime/async/limits.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/weights/limits.hpp"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace troupe::weights {
namespace {

constexpr std::size_t kSend_bytes = 1 << 20;
constexpr std::size_t kTurn_bytes = 4 << 20;  // sent on one stream before others get their turn

core::TimePoint now() {
  return std::chrono::steady_clock::now();
}

bool would_block() {
  return errno == EAGAIN || errno == EINTR;
}

// Sets version and status of the reply from the newest snapshot; null gives the status `none`.
template <class Kind>
void announce(const Kind* newest, const Hello& hello, AnswerStatus none, Answer& reply) {
  if (newest == nullptr) {
    reply.status = none;
    return;
  }
  reply.version = newest->version();
  if (reply.version < hello.at_least) reply.status = AnswerStatus::kOlder;
}

}  // namespace

WeightServer::WeightServer(Listeners listeners,
                           std::string key,
                           SnapshotPool& pool,
                           DeviceSnapshotPool& device_pool)
    : listeners_(std::move(listeners)),
      key_(std::move(key)),
      pool_(pool),
      device_pool_(device_pool),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { loop(); }) {}

WeightServer::~WeightServer() {
  const std::uint64_t one = 1;
  TROUPE_CHECK(::write(stop_.get(), &one, sizeof one) == sizeof one, "waking the weight server");
  thread_.join();
  for (Reader& reader : readers_)
    end_leases(reader);
}

void WeightServer::drop(std::size_t place) {
  end_leases(readers_[place]);
  readers_.erase(readers_.begin() + static_cast<std::ptrdiff_t>(place));
}

void WeightServer::end_leases(Reader& reader) {
  pool_.end_lease(reader.lease);
  device_pool_.end_lease(reader.device_lease);
}

ServerCounters WeightServer::counters() const {
  return {served_.load(), served_on_device_.load(), refused_.load(),
          cut_.load(),    readers_now_.load(),      queued_now_.load()};
}

void WeightServer::loop() {
  std::vector<pollfd> entries;
  for (;;) {
    entries.clear();
    entries.push_back({stop_.get(), POLLIN, 0});
    const bool room = count(State::kHello) < limits::kWeightStrangers_max;
    entries.push_back({room ? listeners_.unix_listener.get() : -1, POLLIN, 0});
    entries.push_back({room ? listeners_.tcp_listener.get() : -1, POLLIN, 0});
    for (const Reader& reader : readers_) {
      const bool writes = reader.state == State::kStream;
      entries.push_back({reader.socket.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    }
    ::poll(entries.data(), entries.size(), poll_timeout_ms(now()));
    if (entries[0].revents != 0) return;
    for (std::size_t i = readers_.size(); i-- > 0;) {
      Reader& reader = readers_[i];
      const short events = entries[3 + i].revents;
      const bool late = now() >= reader.until;
      if (events == 0 && !late) continue;
      if (events != 0 ? go_on(reader, events) : stays_late(reader)) continue;
      if (events == 0) ++cut_;
      drop(i);
    }
    serve_queue();
    if (entries[1].revents != 0) accept_from(listeners_.unix_listener, Wants::kMemory);
    if (entries[2].revents != 0) accept_from(listeners_.tcp_listener, Wants::kStream);
    readers_now_ = readers_.size();
    queued_now_ = count(State::kQueued);
  }
}

// Serves the connections that have waited longest first.
void WeightServer::serve_queue() {
  for (std::size_t i = 0; i < readers_.size() && leases() < limits::kWeightReaders_max;) {
    if (readers_[i].state != State::kQueued || answer(readers_[i])) {
      ++i;
    } else {
      drop(i);
    }
  }
}

// Called when a connection's deadline has passed. Sets a new one and returns true if the connection
// may stay: it waits in the queue, or its receiver has taken bytes since the last check.
bool WeightServer::stays_late(Reader& reader) {
  if (reader.state == State::kQueued) {
    Answer wait;
    wait.status = AnswerStatus::kQueued;
    reader.until = now() + limits::kWeightQueueSign;
    return ::send(reader.socket.get(), &wait, sizeof wait, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           sizeof wait;
  }
  if (reader.state != State::kStream) return false;
  // On a slow link it takes long until enough of the send buffer is free for poll to report it, so
  // count the bytes that have left the buffer.
  int unsent = 0;
  if (::ioctl(reader.socket.get(), SIOCOUTQ, &unsent) != 0) return false;
  const std::uint64_t taken = reader.sent - static_cast<std::uint64_t>(unsent);
  if (taken <= reader.taken) return false;
  reader.taken = taken;
  reader.until = now() + limits::kWeightStall;
  return true;
}

int WeightServer::poll_timeout_ms(core::TimePoint from) const {
  core::TimePoint next = core::TimePoint::max();
  for (const Reader& reader : readers_)
    next = std::min(next, reader.until);
  if (next == core::TimePoint::max()) return -1;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(next - from).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 60'000));
}

void WeightServer::accept_from(const net::OwnedFd& listener, Wants way) {
  net::OwnedFd socket = net::accept_one(listener);
  if (!socket || (way == Wants::kMemory && !net::same_user(socket.get()))) return;
  Reader reader;
  reader.socket = std::move(socket);
  reader.way = way;
  reader.until = now() + limits::kWeightHello;
  readers_.push_back(std::move(reader));
}

std::size_t WeightServer::count(State state) const {
  return static_cast<std::size_t>(
      std::count_if(readers_.begin(), readers_.end(),
                    [state](const Reader& reader) { return reader.state == state; }));
}

std::size_t WeightServer::leases() const {
  return static_cast<std::size_t>(
      std::count_if(readers_.begin(), readers_.end(), [](const Reader& reader) {
        return reader.lease != nullptr || reader.device_lease != nullptr;
      }));
}

bool WeightServer::go_on(Reader& reader, short events) {
  switch (reader.state) {
    case State::kHello:
      return read_hello(reader);
    case State::kStream:
      if ((events & (POLLERR | POLLHUP)) == 0) return stream(reader);
      ++cut_;
      return false;
    case State::kHeld:
      return still_held(reader);
    case State::kQueued:
      return still_queued(reader);
  }
  return false;
}

bool WeightServer::read_hello(Reader& reader) {
  char* const into = reinterpret_cast<char*>(&reader.hello) + reader.hello_bytes;
  const ssize_t n = ::recv(reader.socket.get(), into, sizeof(Hello) - reader.hello_bytes, 0);
  if (n < 0 && would_block()) return true;
  if (n <= 0) {
    ++cut_;
    return false;
  }
  reader.hello_bytes += static_cast<std::size_t>(n);
  if (reader.hello_bytes >= sizeof kPushMagic && reader.hello.magic != kPushMagic) {
    ++refused_;
    return false;
  }
  if (reader.hello_bytes < sizeof(Hello)) return true;
  const bool waits = leases() >= limits::kWeightReaders_max || count(State::kQueued) > 0;
  return waits ? answer_later(reader) : answer(reader);
}

bool WeightServer::answer_later(Reader& reader) {
  if (!core::same_secret({reader.hello.key, kKey_chars}, key_)) return answer(reader);
  if (count(State::kQueued) >= limits::kWeightQueue_max) {
    Answer full;
    full.status = AnswerStatus::kTooMany;
    ++refused_;
    (void)!::send(reader.socket.get(), &full, sizeof full, MSG_NOSIGNAL);
    return false;
  }
  reader.state = State::kQueued;
  reader.until = now() + limits::kWeightQueueSign;
  return true;
}

// A queued receiver sends nothing, so readable input means that it disconnected.
bool WeightServer::still_queued(Reader& reader) {
  char none = 0;
  const bool there = ::recv(reader.socket.get(), &none, 1, 0) < 0 && would_block();
  if (!there) ++cut_;
  return there;
}

// Answers the hello; the caller has checked that a snapshot may be lent. False: connection ends.
bool WeightServer::answer(Reader& reader) {
  Answer reply;
  const Wants wants = reader.hello.wants;
  if (!core::same_secret({reader.hello.key, kKey_chars}, key_)) {
    reply.status = AnswerStatus::kWrongKey;
    ++refused_;
  } else if (wants != reader.way && (wants != Wants::kDevice || reader.way != Wants::kMemory)) {
    reply.status = AnswerStatus::kMalformed;
    ++refused_;
  } else if (wants == Wants::kDevice) {
    reader.device_lease = device_pool_.lease_newest();
    announce(reader.device_lease.get(), reader.hello, AnswerStatus::kNoDevice, reply);
  } else {
    reader.lease = pool_.lease_newest();
    announce(reader.lease.get(), reader.hello, AnswerStatus::kNothing, reply);
  }
  if (reply.status != AnswerStatus::kHere) {
    (void)!::send(reader.socket.get(), &reply, sizeof reply, MSG_NOSIGNAL);
    return false;
  }
  if (reader.device_lease != nullptr) return hand_out_place(reader, reply);
  reply.buffer_id = reader.lease->id();
  reply.bytes = reader.lease->shape().bytes();
  // The first bytes on a fresh connection always fit into its buffer.
  if (reader.way == Wants::kMemory) {
    reader.state = State::kHeld;
    reader.until = core::TimePoint::max();  // a frozen receiver costs its snapshot, nothing else
    const bool sent = net::send_with_fd(reader.socket, &reply, sizeof reply, reader.lease->fd());
    ++(sent ? served_ : cut_);
    return sent;
  }
  if (::send(reader.socket.get(), &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) {
    ++cut_;
    return false;
  }
  reader.state = State::kStream;
  reader.until = now() + limits::kWeightStall;
  return stream(reader);
}

// Sends the answer to kDevice. The lease lasts as long as the connection, as for shared memory.
bool WeightServer::hand_out_place(Reader& reader, const Answer& reply) {
  const DeviceSnapshot& snapshot = *reader.device_lease;
  struct {
    Answer answer;
    DevicePlace place;
  } message;
  message.answer = reply;
  message.answer.buffer_id = snapshot.id();
  message.answer.bytes = snapshot.shape().data_bytes();
  message.place.layout_hash = snapshot.shape().layout_hash;
  snapshot.device().copy(message.place.device, sizeof message.place.device - 1);
  std::copy(snapshot.handle().begin(), snapshot.handle().end(), message.place.handle);
  reader.state = State::kHeld;
  reader.until = core::TimePoint::max();
  const bool sent =
      ::send(reader.socket.get(), &message, sizeof message, MSG_NOSIGNAL) == sizeof message;
  if (sent) ++served_on_device_;
  ++(sent ? served_ : cut_);
  return sent;
}

// Sends more of the snapshot. Uses send, because with sendfile the receiver copies from pages that
// are in no cache, which takes half as long again. The lease ends when the system has accepted all
// bytes; the receiver then has kCallDeadline to confirm them.
bool WeightServer::stream(Reader& reader) {
  const std::uint64_t bytes = reader.lease->shape().bytes();
  for (std::size_t turn = 0; turn < kTurn_bytes && reader.sent < bytes;) {
    const std::size_t most = std::min<std::uint64_t>(bytes - reader.sent, kSend_bytes);
    const ssize_t n = ::send(reader.socket.get(), reader.lease->bytes() + reader.sent, most,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && would_block()) return true;
    if (n <= 0) {
      ++cut_;
      return false;
    }
    reader.sent += static_cast<std::uint64_t>(n);
    turn += static_cast<std::size_t>(n);
    reader.until = now() + limits::kWeightStall;
  }
  if (reader.sent == bytes) {
    reader.state = State::kHeld;
    reader.until = now() + async::limits::kCallDeadline;
    end_leases(reader);
  }
  return true;
}

// The receiver of a stream confirms it with one byte; if the connection ends without that, the
// receiver is lost. A receiver of shared or device memory disconnects when it is done.
bool WeightServer::still_held(Reader& reader) {
  char done = 0;
  const ssize_t n = ::recv(reader.socket.get(), &done, 1, 0);
  if (n < 0 && would_block()) return true;
  if (reader.way == Wants::kStream) ++(n == 1 ? served_ : cut_);
  return false;
}

}  // namespace troupe::weights
