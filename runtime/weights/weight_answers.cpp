// How a WeightServer answers a receiver: the descriptor, the handle, or the stream, up to the
// receiver's confirmation.
#include "runtime/async/limits.hpp"
#include "runtime/weights/limits.hpp"
#include "runtime/weights/weight_server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace troupe::weights {
namespace {

constexpr std::size_t kSend_bytes = 1 << 20;
constexpr std::size_t kTurn_bytes = 4 << 20;  // sent on one stream before others get their turn

core::TimePoint in(core::Duration span) {
  return std::chrono::steady_clock::now() + span;
}

bool not_now() {
  return errno == EAGAIN || errno == EINTR;
}

// Sets version and status of the reply from what was leased; null gives the status `none`.
template <class Kind>
void announce(const Kind* leased, const Hello& hello, AnswerStatus none, Answer& reply) {
  if (leased == nullptr) {
    reply.status = none;
    return;
  }
  reply.version = leased->version();
  if (reply.version < hello.at_least) reply.status = AnswerStatus::kOlder;
}

}  // namespace

// Leases what the reader asks for, the newest version or one alone, and says so in the reply.
void WeightServer::grant(Reader& reader, Answer& reply) {
  const Hello& hello = reader.hello;
  const bool keep = cut_receivers_.contains(reader.number()) || hello.keep != 0;
  auto& [pool, device_pool, wanted] = shelf(reader);
  if (hello.wants == Wants::kDevice) {
    reader.device_lease = device_pool.lease_newest(keep);
    reader.keeps = keep && device_pool.keeps(reader.device_lease);
    announce(reader.device_lease.get(), hello, AnswerStatus::kNoDevice, reply);
  } else if (hello.exact != 0) {
    reader.lease = pool.lease_version(hello.at_least, keep);
    reader.keeps = keep && pool.keeps(reader.lease);
    announce(reader.lease.get(), hello, AnswerStatus::kReplaced, reply);
  } else {
    reader.lease = pool.lease_newest(keep);
    reader.keeps = keep && pool.keeps(reader.lease);
    announce(reader.lease.get(), hello, AnswerStatus::kNothing, reply);
  }
}

// Answers the hello of a reader that may be served. False: the connection ends.
bool WeightServer::answer(Reader& reader) {
  Answer reply;
  grant(reader, reply);
  if (reply.status != AnswerStatus::kHere) {
    (void)!::send(reader.socket.get(), &reply, sizeof reply, MSG_NOSIGNAL);
    return false;
  }
  if (reader.device_lease != nullptr) return hand_out_place(reader, reply);
  reply.buffer_id = reader.lease->id();
  reply.bytes = reader.lease->size();
  reply.kept = reader.keeps ? 1 : 0;
  if (work_.source == 0 && !work_.sources.empty())
    reply.sources = static_cast<std::uint32_t>(work_.sources.size());
  // The first bytes on a connection on which nothing is under way always fit into its buffer.
  if (reader.way == Wants::kMemory) return hand_out_memory(reader, reply);
  if (is_sent_on(reader, *reader.lease)) return true;
  begin_stream(reader, reply);
  if (::send(reader.socket.get(), &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) {
    ++cut_;
    return false;
  }
  reader.state = State::kStream;
  reader.until = in(limits::kWeightStall);
  return stream(reader);
}

// Sends the answer to kMemory, with the places of the other sources.
bool WeightServer::hand_out_memory(Reader& reader, const Answer& reply) {
  std::vector<char> message(sizeof reply + (reply.sources - 1) * sizeof(SourcePlace));
  std::memcpy(message.data(), &reply, sizeof reply);
  for (std::uint32_t i = 1; i < reply.sources; ++i) {
    SourcePlace place;
    work_.sources[i].copy(place.socket, sizeof place.socket - 1);
    std::memcpy(message.data() + sizeof reply + (i - 1) * sizeof place, &place, sizeof place);
  }
  reader.state = State::kHeld;
  // A frozen receiver costs nothing but its snapshot, until that is needed.
  reader.until = reader.keeps ? in(limits::kWeightKeep) : core::TimePoint::max();
  ++served_;  // before it is sent: who has it may look at the counts
  const bool sent =
      net::send_with_fd(reader.socket, message.data(), message.size(), reader.lease->fd());
  if (!sent) {
    --served_;
    ++cut_;
  }
  return sent;
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
  message.answer.bytes = snapshot.shape().image_bytes;
  message.place.layout_hash = snapshot.shape().layout_hash;
  snapshot.device().copy(message.place.device, sizeof message.place.device - 1);
  std::copy(snapshot.handle().begin(), snapshot.handle().end(), message.place.handle);
  reader.state = State::kHeld;
  reader.until = reader.keeps ? in(limits::kWeightKeep) : core::TimePoint::max();
  ++served_;  // before it is sent: who has it may look at the counts
  ++served_on_device_;
  const bool sent =
      ::send(reader.socket.get(), &message, sizeof message, MSG_NOSIGNAL) == sizeof message;
  if (!sent) {
    --served_on_device_;
    --served_;
    ++cut_;
  }
  return sent;
}

// A stream to one that has the first buckets of this version goes on after them.
void WeightServer::begin_stream(Reader& reader, Answer& reply) {
  const Hello& hello = reader.hello;
  const bool goes_on =
      hello.begun == reader.lease->version() && hello.buckets <= reader.lease->shape().buckets;
  reader.first_bucket = reply.first_bucket = goes_on ? hello.buckets : 0;
  reader.at = reader.sent = reader.taken = 0;
  reader.starved = false;
}

// Sends more of the snapshot. Uses send, because with sendfile the receiver copies from pages that
// are in no cache, which takes half as long again. The lease ends when the system has accepted all
// bytes; the receiver then has kCallDeadline to confirm them.
bool WeightServer::stream(Reader& reader) {
  const Snapshot& snapshot = *reader.lease;
  const std::uint64_t image = snapshot.shape().data_offset();
  if (snapshot.abandoned()) return false;
  reader.starved = false;
  const std::uint64_t ready = snapshot.ready_bytes();
  for (std::size_t turn = 0; turn < kTurn_bytes && reader.at < ready;) {
    const std::uint64_t end = reader.at < image ? image : ready;
    const std::size_t most = std::min<std::uint64_t>(end - reader.at, kSend_bytes);
    const ssize_t n = ::send(reader.socket.get(), snapshot.bytes() + reader.at, most,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && not_now()) return true;
    if (n <= 0) {
      ++cut_;
      return false;
    }
    reader.at += static_cast<std::uint64_t>(n);
    reader.sent += static_cast<std::uint64_t>(n);
    streamed_bytes_ += static_cast<std::uint64_t>(n);
    turn += static_cast<std::size_t>(n);
    reader.until = in(limits::kWeightStall);
    if (reader.at == image) {
      reader.at += snapshot.share().before(reader.first_bucket) * snapshot.shape().bucket_bytes;
    }
  }
  reader.starved = reader.at >= ready && ready < snapshot.size();
  if (reader.starved) reader.until = core::TimePoint::max();
  if (reader.at >= snapshot.size()) {
    reader.state = State::kHeld;
    reader.until = in(async::limits::kCallDeadline);
    end_leases(reader);
  }
  return true;
}

// More buckets may be ready, and a snapshot may have been given up.
void WeightServer::go_on_streaming() {
  for (std::size_t i = readers_.size(); i-- > 0;) {
    Reader& reader = readers_[i];
    if (reader.state != State::kStream || !reader.starved) continue;
    reader.until = in(limits::kWeightStall);
    if (!stream(reader)) drop(i);
  }
}

// The receiver of a stream confirms it with one byte, and may then send its next hello on the same
// connection; if that ends before, the receiver is lost. A receiver of shared or device memory
// disconnects when it is done.
bool WeightServer::still_held(Reader& reader) {
  char done = 0;
  const ssize_t n = ::recv(reader.socket.get(), &done, 1, 0);
  if (n < 0 && not_now()) return true;
  if (reader.way == Wants::kMemory || n == 1) cut_receivers_.forget(reader.number());
  if (reader.way == Wants::kMemory) return false;
  ++(n == 1 ? served_ : cut_);
  return n == 1 && becomes_idle(reader);
}

bool WeightServer::becomes_idle(Reader& reader) {
  if (count(State::kIdle) >= limits::kWeightIdle_max) return false;
  book_.progress(reader.number(), ~std::uint32_t{0}, in(core::Duration(0)));
  reader.state = State::kIdle;
  reader.until = core::TimePoint::max();
  reader.hello_bytes = reader.report_bytes = 0;
  return true;
}

}  // namespace troupe::weights
