#include "runtime/weights/stream_fetch.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/weights/limits.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace troupe::weights {
namespace {

using core::ErrorCode;
using core::fail;

constexpr int kLook_ms = 50;  // between looks whether the subscriber was closed

core::TimePoint clock_now() {
  return std::chrono::steady_clock::now();
}

std::string name_of_stream(core::Version version) {
  return "the stream of version " + std::to_string(version) + " of the weights";
}

// What a relay did wrong, by the error of receiving from it.
RelayFault fault_of(ErrorCode code) {
  if (code == ErrorCode::kDeadline) return RelayFault::kSilent;
  return code == ErrorCode::kData ? RelayFault::kWrong : RelayFault::kLost;
}

bool is_relays_fault(ErrorCode code) {
  return code == ErrorCode::kPeerLost || code == ErrorCode::kDeadline || code == ErrorCode::kData ||
         code == ErrorCode::kConfig || code == ErrorCode::kNotFound;
}

bool is_readable(const net::OwnedFd& socket, int ms) {
  pollfd entry{socket.get(), POLLIN, 0};
  return ::poll(&entry, 1, ms) > 0;
}

}  // namespace

StreamFetch::~StreamFetch() {
  if (snapshot_ == nullptr || snapshot_->complete()) return;
  snapshot_->abandon();
  context_.relay.look();
}

core::Result<void> StreamFetch::ask(StreamSockets& sockets) {
  sockets_ = &sockets;
  TROUPE_TRY_SET(direction_, ask_publisher());
  return {};
}

core::Result<StreamFetch::Direction> StreamFetch::ask_publisher() {
  Hello hello = hello_for(context_.hello.at_least, Wants::kStream);
  hello.relays = 1;
  TROUPE_TRY(say(sockets_->publisher, hello));
  Direction direction;
  do {
    TROUPE_TRY(net::receive_all(sockets_->publisher, &direction.answer, sizeof direction.answer,
                                context_.patience, "the answer of " + context_.source));
  } while (direction.answer.magic == kPushMagic &&
           direction.answer.status == AnswerStatus::kQueued);
  if (direction.answer.magic == kPushMagic && direction.answer.status == AnswerStatus::kAtRelay) {
    TROUPE_TRY(net::receive_all(sockets_->publisher, &direction.place, sizeof direction.place,
                                context_.patience, "the answer of " + context_.source));
    direction.place.socket[sizeof direction.place.socket - 1] = 0;
    direction.place.address[sizeof direction.place.address - 1] = 0;
  }
  return direction;
}

Hello StreamFetch::hello_for(core::Version at_least, Wants wants) const {
  Hello hello = context_.hello;
  hello.at_least = at_least;
  hello.wants = wants;
  hello.begun = snapshot_ != nullptr ? snapshot_->version() : 0;
  hello.buckets = snapshot_ != nullptr ? snapshot_->ready() : 0;
  return hello;
}

core::Result<void> StreamFetch::say(const net::OwnedFd& socket, const Hello& hello) {
  return net::send_all(socket, &hello, sizeof hello, context_.patience, "asking for weights");
}

// Tells the publisher what the relay did, and sets the direction that it gives now.
core::Result<void> StreamFetch::ask_again(RelayFault fault) {
  if (publisher_lost_) {
    return fail(ErrorCode::kPeerLost, context_.source + " has ended, and so has its relay");
  }
  context_.hello.avoid = parent_;
  context_.hello.fault = fault;
  report(Report::Kind::kAgain);
  auto direction = ask_publisher();
  context_.hello.avoid = 0;
  context_.hello.fault = RelayFault::kNone;
  if (!direction) publisher_lost_ = true;
  if (!direction) return direction.failure();
  direction_ = *direction;
  return {};
}

void StreamFetch::report(Report::Kind kind) {
  const Report text{kind, snapshot_ != nullptr ? snapshot_->ready() : 0};
  reported_ = clock_now();
  publisher_lost_ = publisher_lost_ || ::send(sockets_->publisher.get(), &text, sizeof text,
                                              MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof text;
}

core::Result<ArrivedImage> StreamFetch::receive() {
  while (direction_->answer.magic == kPushMagic &&
         direction_->answer.status == AnswerStatus::kAtRelay) {
    parent_ = direction_->place.number;
    const auto& aside = context_.set_aside;
    const bool known = std::find(aside.begin(), aside.end(), parent_) != aside.end();
    const core::Result<void> taken =
        known ? fail(ErrorCode::kData, "a relay that was set aside") : take_from_relay();
    if (taken) {
      report(Report::Kind::kDone);
      return arrived();
    }
    if (std::exchange(redirected_, false)) continue;
    if (!is_relays_fault(taken.error().code)) return taken.failure();
    const RelayFault fault = fault_of(taken.error().code);
    if (fault == RelayFault::kWrong && !known) context_.set_aside.push_back(parent_);
    if (context_.set_aside.size() > limits::kRelaysAvoided_max) {
      context_.set_aside.erase(context_.set_aside.begin());
    }
    const auto asked = ask_again(fault);
    if (!asked) return fail(asked.error().within(taken.error().message));
  }
  parent_ = 0;
  const Answer answer = direction_->answer;
  TROUPE_TRY(check_answer(answer, context_.hello.at_least, context_.source));
  TROUPE_TRY(take_from_sources(answer));
  return arrived();
}

// Each source is told when all of its share is here.
core::Result<void> StreamFetch::take_from_sources(const Answer& answer) {
  const std::string what = name_of_stream(answer.version);
  if (answer.sources == 0 || answer.sources > kSources_max) {
    return fail(ErrorCode::kData, context_.source + " tells of " + std::to_string(answer.sources) +
                                      " sources of its weights");
  }
  TROUPE_TRY(begin_snapshot(sockets_->publisher, answer, {0, answer.sources}));
  sockets_->others.resize(answer.sources - 1);
  for (std::uint32_t number = 1; number < answer.sources; ++number)
    TROUPE_TRY(ask_source(number, answer));
  for (std::uint32_t number = 1; number < answer.sources; ++number)
    TROUPE_TRY(open_source(number, answer));
  SourceStreams streams(*snapshot_, answer.first_bucket, what);
  streams.add(sockets_->publisher);
  for (const net::OwnedFd& other : sockets_->others)
    streams.add(other);
  TROUPE_TRY(streams.receive(context_.patience, [this] { context_.relay.look(); }));
  const char done = 1;
  TROUPE_TRY(net::send_all(sockets_->publisher, &done, 1, context_.patience, "ending " + what));
  for (const net::OwnedFd& other : sockets_->others)
    TROUPE_TRY(net::send_all(other, &done, 1, context_.patience, "ending " + what));
  return {};
}

// Asks for the source's share of the version that the publisher has granted, on a new connection if
// there is none.
core::Result<void> StreamFetch::ask_source(std::uint32_t number, const Answer& granted) {
  net::OwnedFd& socket = sockets_->others[number - 1];
  Hello hello = hello_for(granted.version, Wants::kStream);
  hello.source = number;
  hello.exact = 1;
  hello.keep = granted.kept != 0 ? 1 : 0;
  if (socket && say(socket, hello)) return {};
  TROUPE_TRY_SET(socket, context_.connect());
  return say(socket, hello);
}

// Hears the answer; once more on a new connection if the old one has ended while it was idle.
core::Result<void> StreamFetch::open_source(std::uint32_t number, const Answer& granted) {
  net::OwnedFd& socket = sockets_->others[number - 1];
  const Share share{number, granted.sources};
  const auto heard = hear_source(socket, granted, share);
  if (heard || heard.error().code != ErrorCode::kPeerLost) return heard;
  socket.close();
  TROUPE_TRY(ask_source(number, granted));
  return hear_source(socket, granted, share);
}

core::Result<void> StreamFetch::hear_source(const net::OwnedFd& socket,
                                            const Answer& granted,
                                            Share share) {
  const std::string source = "source " + std::to_string(share.number) + " of " + context_.source;
  TROUPE_TRY_ASSIGN(answer, hear_answer(socket, source));
  TROUPE_TRY(check_answer(answer, granted.version, source));
  if (answer.first_bucket != granted.first_bucket)
    return fail(ErrorCode::kData, source + " begins with another bucket than we asked for");
  return begin_snapshot(socket, answer, share);
}

core::Result<ArrivedImage> StreamFetch::arrived() {
  if (mapped_) return std::move(*mapped_);
  ArrivedImage image;
  image.version = snapshot_->version();
  image.shape = snapshot_->shape();
  image.parts.push_back({snapshot_->buckets(), {}, snapshot_});
  image.verified = true;
  return image;
}

core::Result<void> StreamFetch::take_from_relay() {
  reviewed_ = clock_now();
  const Direction to = *direction_;
  const core::TimePoint until = clock_now() + limits::kRelayStuck;
  if (to.place.socket[0] != 0) {
    TROUPE_TRY_ASSIGN(socket, net::connect_unix(to.place.socket, until));
    return take_memory(socket, to.answer.version);
  }
  const std::string address = to.place.address;
  if (context_.options.dial) {
    TROUPE_TRY_ASSIGN(socket, context_.options.dial(address, until));
    return take_stream(socket, to.answer.version);
  }
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return fail(ErrorCode::kPeerLost, "a relay without an address");
  const auto port =
      static_cast<std::uint32_t>(std::strtoul(address.c_str() + colon + 1, nullptr, 10));
  TROUPE_TRY_ASSIGN(socket, net::connect_tcp(address.substr(0, colon), port, until));
  return take_stream(socket, to.answer.version);
}

core::Result<Answer> StreamFetch::hear_answer(const net::OwnedFd& socket,
                                              const std::string& source) {
  Answer answer;
  do {
    TROUPE_TRY(read(socket, &answer, sizeof answer, "the answer of " + source));
  } while (answer.magic == kPushMagic && answer.status == AnswerStatus::kQueued);
  return answer;
}

core::Result<void> StreamFetch::take_stream(const net::OwnedFd& socket, core::Version at_least) {
  TROUPE_TRY(say(socket, hello_for(at_least, Wants::kStream)));
  TROUPE_TRY_ASSIGN(answer, hear_answer(socket, "a relay"));
  if (!check_answer(answer, at_least, "a relay")) {
    return fail(ErrorCode::kData, "a relay does not give what the publisher sent us for");
  }
  TROUPE_TRY(begin_snapshot(socket, answer, {}));
  TROUPE_TRY(receive_buckets(socket, answer.first_bucket));
  const char done = 1;
  (void)::send(socket.get(), &done, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  return {};
}

core::Result<void> StreamFetch::take_memory(const net::OwnedFd& socket, core::Version at_least) {
  TROUPE_TRY(say(socket, hello_for(at_least, Wants::kMemory)));
  Answer answer;
  net::OwnedFd memory;
  do {
    TROUPE_TRY(wait_for_relay(socket, "a relay of this host"));
    TROUPE_TRY(net::receive_with_fd(socket, &answer, sizeof answer, memory, context_.patience,
                                    "the answer of a relay"));
  } while (answer.magic == kPushMagic && answer.status == AnswerStatus::kQueued);
  if (!check_answer(answer, at_least, "a relay") || !memory) {
    return fail(ErrorCode::kData, "a relay does not give what the publisher sent us for");
  }
  TROUPE_TRY_SET(mapped_, context_.opened.open(answer, memory, context_.public_key));
  mapped_->parts.front().lease = net::OwnedFd(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  return {};
}

// Reads head and checksums, and begins or goes on with the snapshot that they announce.
core::Result<void> StreamFetch::begin_snapshot(const net::OwnedFd& socket,
                                               const Answer& answer,
                                               Share share) {
  const std::string what = name_of_stream(answer.version);
  SnapshotHead head;
  TROUPE_TRY(read(socket, &head, sizeof head, what + ", its head"));
  TROUPE_TRY_ASSIGN(shape, check_head(head, context_.expected));
  if (answer.bytes != shape.bytes(share) || head.version != answer.version) {
    return fail(ErrorCode::kData, what + " is not what was announced");
  }
  std::vector<char> rest(shape.data_offset() - sizeof head);
  TROUPE_TRY(read(socket, rest.data(), rest.size(), what + ", its checksums"));
  TROUPE_TRY_ASSIGN(image, announced(head, shape, rest.data(), context_.public_key));
  if (share.number != 0) {
    if (image.table == snapshot_->table()) return {};
    return fail(ErrorCode::kData, what + ": source " + std::to_string(share.number) +
                                      " has other checksums than the publisher");
  }
  TROUPE_TRY(begin(head, image));
  if (answer.first_bucket != snapshot_->ready()) {
    return fail(ErrorCode::kData, what + " begins with another bucket than we asked for");
  }
  return {};
}

// The buckets of a relay.
core::Result<void> StreamFetch::receive_buckets(const net::OwnedFd& socket, std::uint32_t first) {
  const std::uint32_t buckets = snapshot_->shape().buckets;
  for (std::uint32_t i = first; i < buckets; ++i) {
    TROUPE_TRY(receive_bucket(socket, i));
    snapshot_->set_ready(i + 1);
    context_.relay.look();
    if (i + 1 == buckets) continue;
    if (clock_now() - reported_ >= limits::kRelayReport) report(Report::Kind::kProgress);
    if (clock_now() - reviewed_ >= limits::kRelayReview) TROUPE_TRY(review(RelayFault::kSlow));
  }
  return {};
}

// Goes on with the snapshot of this version that was begun, or begins one.
core::Result<void> StreamFetch::begin(const SnapshotHead& head, const ArrivedImage& announced) {
  if (snapshot_ != nullptr && snapshot_->version() == head.version &&
      snapshot_->table() == announced.table) {
    return {};
  }
  if (snapshot_ != nullptr) snapshot_->abandon();
  SnapshotPool& pool = context_.relay.pool(context_.hello.image);
  TROUPE_TRY_ASSIGN(taken, pool.take([&] { return Snapshot::create(announced.shape); }));
  if (taken->shape().bucket_bytes != announced.shape.bucket_bytes) {
    return fail(ErrorCode::kData, "the head of the weights: the size of its buckets changed");
  }
  taken->begin(head, announced.table);
  snapshot_ = taken;
  pool.offer(std::move(taken));
  return {};
}

// Receives one bucket from the socket and checks it on the way.
core::Result<void> StreamFetch::receive_bucket(const net::OwnedFd& socket, std::uint32_t index) {
  const SnapshotShape& shape = snapshot_->shape();
  const std::string what =
      name_of_stream(snapshot_->version()) + ", bucket " + std::to_string(index);
  const std::size_t size = shape.size_of(index);
  char* const into = snapshot_->bucket(index);
  std::uint32_t crc = 0;
  for (std::size_t done = 0; done < size;) {
    const std::size_t piece = std::min(size - done, kPiece_bytes);
    TROUPE_TRY(read(socket, into + done, piece, what));
    crc = core::crc32c(into + done, piece, crc);
    done += piece;
  }
  if (crc == snapshot_->table()[index]) return {};
  return wrong_bucket(snapshot_->version(), index, shape.buckets);
}

core::Result<void> StreamFetch::read(const net::OwnedFd& socket,
                                     void* into,
                                     std::size_t size,
                                     const std::string& what) {
  if (parent_ == 0) return net::receive_all(socket, into, size, context_.patience, what);
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::recv(socket.get(), static_cast<char*>(into) + done, size - done, 0);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      TROUPE_TRY(wait_for_relay(socket, what));
    } else {
      return fail(ErrorCode::kPeerLost, what + ": the relay closed");
    }
  }
  return {};
}

// Asks the publisher whether to stay at the relay. Error kPeerLost with redirected_: no. When the
// publisher is gone, there is nobody to ask.
core::Result<void> StreamFetch::review(RelayFault fault) {
  reviewed_ = clock_now();
  if (publisher_lost_ || !ask_again(fault)) return {};
  redirected_ =
      direction_->answer.status != AnswerStatus::kAtRelay || direction_->place.number != parent_;
  if (!redirected_) return {};
  return fail(ErrorCode::kPeerLost, "the publisher has sent us to another relay");
}

// Waits for a byte of the relay. Errors: kDeadline (it is silent, and the publisher is gone),
// kPeerLost with redirected_ (the publisher has given another direction), kClosed.
core::Result<void> StreamFetch::wait_for_relay(const net::OwnedFd& socket,
                                               const std::string& what) {
  core::TimePoint silent_from = clock_now();
  const core::TimePoint given_up = silent_from + context_.patience.span;
  while (!is_readable(socket, kLook_ms)) {
    if (*context_.patience.given_up) return fail(ErrorCode::kClosed, what + ": given up");
    if (clock_now() - silent_from < limits::kRelaySilent) continue;
    if (publisher_lost_) {
      if (clock_now() < given_up) continue;
      return fail(ErrorCode::kDeadline, what + ": the relay is silent");
    }
    TROUPE_TRY(review(RelayFault::kSilent));
    silent_from = clock_now();
  }
  return {};
}

}  // namespace troupe::weights
