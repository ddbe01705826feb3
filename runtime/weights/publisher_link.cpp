#include "runtime/weights/publisher_link.hpp"

#include "runtime/weights/limits.hpp"

#include <sys/socket.h>

namespace troupe::weights {

core::Result<void> PublisherLink::ask(const net::OwnedFd& socket) {
  socket_ = &socket;
  return hear(partial_.hello_for(context_.hello.at_least, Wants::kStream));
}

core::Result<void> PublisherLink::hear(Hello hello) {
  const std::string what = "the answer of " + context_.source;
  hello.relays = 1;
  TROUPE_TRY(
      net::send_all(*socket_, &hello, sizeof hello, context_.patience, "asking for weights"));
  const auto read = [&](void* into, std::size_t size, const std::string& name) {
    return net::receive_all(*socket_, into, size, context_.patience, name);
  };
  TROUPE_TRY_ASSIGN(answer, read_answer(read, context_.source));
  RelayPlace relay;
  if (answer.says(AnswerStatus::kAtRelay)) TROUPE_TRY(read(&relay, sizeof relay, what));
  answer_ = answer;
  relay_ = relay;
  return {};
}

core::Result<void> PublisherLink::ask_again(std::uint32_t relay, RelayFault fault) {
  if (lost_) {
    return core::fail(core::ErrorCode::kPeerLost,
                      context_.source + " has ended, and so has its relay");
  }
  report(Report::Kind::kAgain);
  Hello hello = partial_.hello_for(context_.hello.at_least, Wants::kStream);
  hello.avoid = relay;
  hello.fault = fault;
  const auto heard = hear(hello);
  if (!heard) lost_ = true;
  return heard;
}

void PublisherLink::report(Report::Kind kind) {
  const Report text{kind, partial_.ready()};
  reported_ = core::steady_clock().now();
  lost_ = lost_ ||
          ::send(socket_->get(), &text, sizeof text, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof text;
}

void PublisherLink::report_progress() {
  if (core::steady_clock().now() - reported_ >= limits::kRelayReport)
    report(Report::Kind::kProgress);
}

}  // namespace troupe::weights
