#include "runtime/weights/weight_reader.hpp"

#include "runtime/async/limits.hpp"
#include "runtime/weights/limits.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace troupe::weights {
namespace {

core::TimePoint in(core::Duration span) {
  return core::steady_clock().now() + span;
}

}  // namespace

WeightReader::WeightReader(net::OwnedFd socket, Wants way)
    : socket_(std::move(socket)), way_(way), until_(in(limits::kWeightHello)) {}

std::uint32_t WeightReader::buckets_taken() const {
  return state_ == State::kStream ? stream_.buckets_taken(socket_) : 0;
}

pollfd WeightReader::awaited() const {
  int events = POLLIN;
  if (state_ == State::kStream) events = stream_.is_starved() ? POLLRDHUP : POLLOUT | POLLRDHUP;
  return {socket_.get(), static_cast<short>(events), 0};
}

WeightReader::Outcome WeightReader::go_on(short events, std::atomic<std::uint64_t>& streamed) {
  switch (state_) {
    case State::kHello:
    case State::kIdle:
      return read_hello();
    case State::kStream:
      if ((events & (POLLERR | POLLHUP | POLLRDHUP)) == 0) return stream(streamed);
      return Outcome::kCut;
    case State::kHeld:
      return confirm();
    case State::kQueued: {  // it sends nothing, so readable input means that it has left
      char none = 0;
      const bool there = ::recv(socket_.get(), &none, 1, 0) < 0 && net::would_block();
      return there ? Outcome::kStays : Outcome::kCut;
    }
    case State::kSentOn:
      return read_report();
  }
  return Outcome::kLeaves;
}

WeightReader::Outcome WeightReader::go_on_late() {
  if (state_ == State::kQueued) {
    Answer wait;
    wait.status = AnswerStatus::kQueued;
    until_ = in(limits::kWeightQueueSign);
    return say(&wait, sizeof wait) ? Outcome::kStays : Outcome::kCut;
  }
  if (lease_.is_kept() && state_ == State::kHeld) {
    lease_.stop_keeping();
    until_ = core::TimePoint::max();
    return Outcome::kStays;
  }
  if (state_ != State::kStream || !stream_.has_moved(socket_)) return Outcome::kCut;
  until_ = in(limits::kWeightStall);
  return Outcome::kStays;
}

// A hello that comes with a connection was sent to source 0: the receiver is at that connection.
WeightReader::Outcome WeightReader::read_hello() {
  char* const into = reinterpret_cast<char*>(&hello_) + hello_bytes_;
  net::OwnedFd passed;
  const ssize_t n = net::receive_some(socket_, into, sizeof(Hello) - hello_bytes_, passed);
  if (n < 0 && net::would_block()) return Outcome::kStays;
  if (n <= 0) return state_ == State::kHello || hello_bytes_ > 0 ? Outcome::kCut : Outcome::kLeaves;
  if (passed) {
    socket_ = std::move(passed);
    way_ = Wants::kStream;
  }
  if (hello_bytes_ == 0) until_ = in(limits::kWeightHello);
  hello_bytes_ += static_cast<std::size_t>(n);
  if (hello_bytes_ >= sizeof kPushMagic && hello_.magic != kPushMagic) return Outcome::kRefused;
  return hello_bytes_ < sizeof(Hello) ? Outcome::kStays : Outcome::kAsks;
}

WeightReader::Outcome WeightReader::read_report() {
  char* const into = reinterpret_cast<char*>(&report_) + report_bytes_;
  const ssize_t n = ::recv(socket_.get(), into, sizeof(Report) - report_bytes_, MSG_DONTWAIT);
  if (n < 0 && net::would_block()) return Outcome::kStays;
  if (n <= 0) return Outcome::kCut;
  report_bytes_ += static_cast<std::size_t>(n);
  if (report_bytes_ < sizeof(Report)) return Outcome::kStays;
  report_bytes_ = 0;
  switch (report_.kind) {
    case Report::Kind::kProgress:
      return Outcome::kProgress;
    case Report::Kind::kDone:
      return Outcome::kDone;
    case Report::Kind::kAgain:
      rest(in(limits::kWeightHello));
      return Outcome::kStays;
  }
  return Outcome::kRefused;
}

// The receiver of a stream confirms it with one byte, and may then send its next hello on the same
// connection; if that ends before, the receiver is lost. A receiver of shared or device memory
// disconnects when it is done.
WeightReader::Outcome WeightReader::confirm() {
  char done = 0;
  const ssize_t n = ::recv(socket_.get(), &done, 1, 0);
  if (n < 0 && net::would_block()) return Outcome::kStays;
  return way_ == Wants::kMemory || n == 1 ? Outcome::kDone : Outcome::kCut;
}

void WeightReader::queue(std::uint64_t turn) {
  state_ = State::kQueued;
  turn_ = turn;
  until_ = in(limits::kWeightQueueSign);
}

bool WeightReader::say(const void* bytes, std::size_t size) {
  return ::send(socket_.get(), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(size);
}

// The lease lasts as long as the connection. A frozen receiver costs nothing but its snapshot,
// until that is needed.
bool WeightReader::lend(Answer answer, std::span<const std::string> sources) {
  state_ = State::kHeld;
  until_ = lease_.is_kept() ? in(limits::kWeightKeep) : core::TimePoint::max();
  if (const DeviceSnapshot* const snapshot = lease_.device()) {
    struct {
      Answer answer;
      DevicePlace place;
    } message{answer, {}};
    message.place.layout_hash = snapshot->shape().layout_hash;
    message.place.device = snapshot->device();
    std::copy(snapshot->handle().begin(), snapshot->handle().end(), message.place.handle);
    return say(&message, sizeof message);
  }
  std::vector<SourcePlace> places(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    places[i].socket = sources[i];
  std::vector<char> message(sizeof answer + places.size() * sizeof(SourcePlace));
  std::memcpy(message.data(), &answer, sizeof answer);
  std::copy_n(reinterpret_cast<const char*>(places.data()), message.size() - sizeof answer,
              message.data() + sizeof answer);
  return net::send_with_fd(socket_, message.data(), message.size(), lease_.host()->fd());
}

// A stream to one that has the first buckets of this version goes on after them.
WeightReader::Outcome WeightReader::begin_stream(Answer answer,
                                                 std::atomic<std::uint64_t>& streamed) {
  const bool goes_on =
      hello_.begun == lease_.host()->version() && hello_.buckets <= lease_.host()->shape().buckets;
  answer.first_bucket = goes_on ? hello_.buckets : 0;
  stream_ = SnapshotStream(*lease_.host(), answer.first_bucket);
  state_ = State::kStream;
  until_ = in(limits::kWeightStall);
  return say(&answer, sizeof answer) ? stream(streamed) : Outcome::kCut;
}

WeightReader::Outcome WeightReader::resume(std::atomic<std::uint64_t>& streamed) {
  if (state_ != State::kStream || !stream_.is_starved()) return Outcome::kStays;
  until_ = in(limits::kWeightStall);
  return stream(streamed);
}

// The lease ends when the system has accepted all bytes; the receiver then has kCallDeadline to
// confirm them.
WeightReader::Outcome WeightReader::stream(std::atomic<std::uint64_t>& streamed) {
  if (lease_.host()->abandoned()) return Outcome::kLeaves;
  const std::uint64_t before = stream_.sent();
  const SnapshotStream::State now = stream_.send(socket_, streamed);
  if (now == SnapshotStream::State::kLost) return Outcome::kCut;
  if (stream_.sent() > before) until_ = in(limits::kWeightStall);
  if (now == SnapshotStream::State::kStarved) until_ = core::TimePoint::max();
  if (now == SnapshotStream::State::kDone) {
    state_ = State::kHeld;
    until_ = in(async::limits::kCallDeadline);
    lease_.end();
  }
  return Outcome::kStays;
}

void WeightReader::send_on(core::Version version, const RelayPlace& relay) {
  struct {
    Answer answer;
    RelayPlace place;
  } message{{}, relay};
  message.answer.status = AnswerStatus::kAtRelay;
  message.answer.version = version;
  lease_.end();
  state_ = State::kSentOn;
  until_ = core::TimePoint::max();
  report_bytes_ = 0;
  (void)say(&message, sizeof message);  // if the connection has ended, the next read says so
}

void WeightReader::rest(core::TimePoint until) {
  state_ = State::kIdle;
  until_ = until;
  hello_bytes_ = report_bytes_ = 0;
}

void WeightReader::take_back() {
  if (way_ == Wants::kMemory) {
    (void)say(&kTakenBack, 1);
  } else {
    const linger at_once{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
}

}  // namespace troupe::weights
