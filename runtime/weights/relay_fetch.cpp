#include "runtime/weights/relay_fetch.hpp"

#include "runtime/weights/limits.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <utility>

namespace troupe::weights {
namespace {

constexpr int kLook_ms = 50;  // between looks whether the subscriber was closed

core::TimePoint clock_now() {
  return core::steady_clock().now();
}

bool is_readable(const net::OwnedFd& socket, int ms) {
  pollfd entry{socket.get(), POLLIN, 0};
  return ::poll(&entry, 1, ms) > 0;
}

core::Failure not_as_sent() {
  return fail(ErrorCode::kData, "a relay does not have what the publisher sent us for");
}

}  // namespace

RelayFetch::RelayFetch(const StreamContext& context,
                       PublisherLink& publisher,
                       PartialSnapshot& into)
    : context_(context),
      publisher_(publisher),
      into_(into),
      relay_(*publisher.relay()),
      version_(publisher.answer().version) {}

core::Result<void> RelayFetch::take() {
  reviewed_ = clock_now();
  TROUPE_TRY_SET(socket_, connect());
  auto taken = relay_.socket.empty() ? take_stream() : take_memory();
  if (!taken) socket_.close();  // the relay's lease ends before the publisher is asked again
  return taken;
}

core::Result<net::OwnedFd> RelayFetch::connect() const {
  const core::TimePoint until = clock_now() + limits::kRelayStuck;
  if (!relay_.socket.empty()) return net::connect_unix(relay_.socket.text(), until);
  const std::string address = relay_.address.text();
  if (context_.options.dial) return context_.options.dial(address, until);
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return fail(ErrorCode::kPeerLost, "a relay has no address");
  const auto port =
      static_cast<std::uint32_t>(std::strtoul(address.c_str() + colon + 1, nullptr, 10));
  return net::connect_tcp(address.substr(0, colon), port, until);
}

core::Result<void> RelayFetch::say_hello(Wants wants) {
  const Hello hello = into_.hello_for(version_, wants);
  return net::send_all(socket_, &hello, sizeof hello, context_.patience, "asking for weights");
}

core::Result<void> RelayFetch::take_stream() {
  const auto read_on = [this](void* into, std::size_t size, const std::string& what) {
    return read(into, size, what);
  };
  TROUPE_TRY(say_hello(Wants::kStream));
  TROUPE_TRY_ASSIGN(answer, read_answer(read_on, "a relay"));
  if (!check_answer(answer, version_, "a relay")) return not_as_sent();
  TROUPE_TRY(into_.begin(answer, {}, read_on));
  while (!into_.complete()) {
    TROUPE_TRY(into_.take_bucket(read_on));
    if (into_.complete()) break;
    publisher_.report_progress();
    if (clock_now() - reviewed_ >= limits::kRelayReview) TROUPE_TRY(review(RelayFault::kSlow));
  }
  const char done = 1;
  (void)::send(socket_.get(), &done, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  return {};
}

core::Result<void> RelayFetch::take_memory() {
  TROUPE_TRY(say_hello(Wants::kMemory));
  Answer answer;
  net::OwnedFd memory;
  do {
    TROUPE_TRY(wait("a relay of this host"));
    TROUPE_TRY(net::receive_with_fd(socket_, &answer, sizeof answer, memory, context_.patience,
                                    "the answer of a relay"));
  } while (answer.says(AnswerStatus::kQueued));
  if (!check_answer(answer, version_, "a relay") || !memory) return not_as_sent();
  TROUPE_TRY_SET(lent_, context_.opened.open(answer, memory, context_.public_key));
  lent_->parts.front().lease = std::move(socket_);
  return {};
}

core::Result<void> RelayFetch::read(void* into, std::size_t size, const std::string& what) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::recv(socket_.get(), static_cast<char*>(into) + done, size - done, 0);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && net::would_block()) {
      TROUPE_TRY(wait(what));
    } else {
      return fail(ErrorCode::kPeerLost, what + ": the relay closed");
    }
  }
  return {};
}

// Asks the publisher whether to stay at the relay. When it is gone, none is asked.
core::Result<void> RelayFetch::review(RelayFault fault) {
  reviewed_ = clock_now();
  if (publisher_.is_lost() || !publisher_.ask_again(relay_.number, fault)) return {};
  redirected_ = publisher_.relay() == nullptr || publisher_.relay()->number != relay_.number;
  if (!redirected_) return {};
  return fail(ErrorCode::kPeerLost, "the publisher has sent us to another relay");
}

// Waits for a byte of the relay.
core::Result<void> RelayFetch::wait(const std::string& what) {
  core::TimePoint silent_from = clock_now();
  const core::TimePoint given_up = silent_from + context_.patience.span;
  while (!is_readable(socket_, kLook_ms)) {
    if (*context_.patience.given_up) return fail(ErrorCode::kClosed, what + ": given up");
    if (clock_now() - silent_from < limits::kRelaySilent) continue;
    if (publisher_.is_lost()) {
      if (clock_now() < given_up) continue;
      return fail(ErrorCode::kDeadline, what + ": the relay is silent");
    }
    TROUPE_TRY(review(RelayFault::kSilent));
    silent_from = clock_now();
  }
  return {};
}

}  // namespace troupe::weights
