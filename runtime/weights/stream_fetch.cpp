#include "runtime/weights/stream_fetch.hpp"

#include "runtime/weights/limits.hpp"
#include "runtime/weights/relay_fetch.hpp"

#include <algorithm>
#include <utility>

namespace troupe::weights {
namespace {

// What a relay did wrong, by the error of receiving from it.
RelayFault fault_of(ErrorCode code) {
  if (code == ErrorCode::kDeadline) return RelayFault::kSilent;
  return code == ErrorCode::kData ? RelayFault::kWrong : RelayFault::kLost;
}

bool is_relays_fault(ErrorCode code) {
  return code == ErrorCode::kPeerLost || code == ErrorCode::kDeadline || code == ErrorCode::kData ||
         code == ErrorCode::kConfig || code == ErrorCode::kNotFound;
}

}  // namespace

bool StreamFetch::is_set_aside(std::uint32_t relay) const {
  return std::ranges::find(context_.set_aside, relay) != context_.set_aside.end();
}

core::Result<ArrivedImage> StreamFetch::receive() {
  while (publisher_.relay() != nullptr) {
    const std::uint32_t relay = publisher_.relay()->number;
    const bool known = is_set_aside(relay);
    RelayFetch from(context_, publisher_, partial_);
    const core::Result<void> taken =
        known ? fail(ErrorCode::kData, "this relay was set aside") : from.take();
    if (taken) {
      publisher_.report(Report::Kind::kDone);
      return from.lent() ? std::move(*from.lent()) : partial_.arrived();
    }
    if (from.is_redirected()) continue;
    if (!is_relays_fault(taken.error().code)) return taken.failure();
    const RelayFault fault = fault_of(taken.error().code);
    if (fault == RelayFault::kWrong && !known) context_.set_aside.push_back(relay);
    if (context_.set_aside.size() > limits::kRelaysAvoided_max) {
      context_.set_aside.erase(context_.set_aside.begin());
    }
    const auto asked = publisher_.ask_again(relay, fault);
    if (!asked) return fail(asked.error().within(taken.error().message));
  }
  const Answer answer = publisher_.answer();
  TROUPE_TRY(check_answer(answer, context_.hello.at_least, context_.source));
  TROUPE_TRY(take_from_sources(answer));
  return partial_.arrived();
}

ReadBytes StreamFetch::reader_of(const net::OwnedFd& socket) const {
  return [this, &socket](void* into, std::size_t size, const std::string& what) {
    return net::receive_all(socket, into, size, context_.patience, what);
  };
}

// Each source is told when all of its share is here.
core::Result<void> StreamFetch::take_from_sources(const Answer& answer) {
  const std::string what = name_of_stream(answer.version);
  TROUPE_TRY(check_sources(answer, context_.source));
  TROUPE_TRY(partial_.begin(answer, {0, answer.sources}, reader_of(sockets_->publisher)));
  sockets_->others.resize(answer.sources - 1);
  for (std::uint32_t number = 1; number < answer.sources; ++number)
    TROUPE_TRY(ask_source(number, answer));
  for (std::uint32_t number = 1; number < answer.sources; ++number)
    TROUPE_TRY(open_source(number, answer));
  SourceStreams streams(partial_.snapshot(), answer.first_bucket, what);
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
  Hello hello = partial_.hello_for(granted.version, Wants::kStream);
  hello.source = number;
  hello.exact = 1;
  hello.keep = granted.kept != 0 ? 1 : 0;
  const auto say = [&] {
    return net::send_all(socket, &hello, sizeof hello, context_.patience, "asking for weights");
  };
  if (socket && say()) return {};
  TROUPE_TRY_SET(socket, context_.connect());
  return say();
}

// Hears the answer; once more on a new connection if the old one has ended while it was idle.
core::Result<void> StreamFetch::open_source(std::uint32_t number, const Answer& granted) {
  const auto heard = hear_source(number, granted);
  if (heard || heard.error().code != ErrorCode::kPeerLost) return heard;
  sockets_->others[number - 1].close();
  TROUPE_TRY(ask_source(number, granted));
  return hear_source(number, granted);
}

core::Result<void> StreamFetch::hear_source(std::uint32_t number, const Answer& granted) {
  const std::string source = "source " + std::to_string(number) + " of " + context_.source;
  const ReadBytes read = reader_of(sockets_->others[number - 1]);
  TROUPE_TRY_ASSIGN(answer, read_answer(read, source));
  TROUPE_TRY(check_answer(answer, granted.version, source));
  if (answer.first_bucket != granted.first_bucket)
    return fail(ErrorCode::kData, source + " begins with another bucket than we asked for");
  return partial_.begin(answer, {number, granted.sources}, read);
}

}  // namespace troupe::weights
