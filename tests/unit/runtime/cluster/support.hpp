// What the transport tests share: roles on virtual time that send each other short texts.
#pragma once

#include "runtime/async/scope.hpp"
#include "runtime/cluster/endpoint.hpp"
#include "tests/sim/virtual_time.hpp"

#include <boost/asio/co_spawn.hpp>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe::cluster::testing {

using core::ErrorCode;
using core::Result;
using namespace std::chrono_literals;

inline constexpr std::uint64_t kSteps = 1'000'000;

inline Identity identity_of(std::string name, std::uint64_t epoch = 1) {
  return {std::move(name), core::RunId{42}, epoch};
}

// A body that carries a text.
inline wire::Frame text_frame(const wire::Header& header, const std::string& text) {
  return wire::pong_frame(header, header.sender, text);
}

inline std::string text_of(const wire::Frame& frame) {
  const auto pong = wire::read_pong(frame);
  return pong ? pong->state : "not a text: " + pong.error().message;
}

inline wire::Frame text_reply(const wire::Frame& request,
                              std::string self,
                              const std::string& text) {
  return text_frame(wire::reply_header(*wire::read_header(request), std::move(self)), text);
}

// Asks a peer with a text; gives the text of its answer.
inline async::task<Result<std::string>> ask(std::shared_ptr<Transport> transport,
                                            PeerName peer,
                                            std::string text,
                                            core::Duration patience = 1s) {
  const auto deadline = async::Deadline::after(transport->timers(), patience);
  wire::Frame frame = text_frame(transport->new_request(deadline), text);
  auto reply = co_await transport->call(std::move(peer), std::move(frame), deadline);
  if (!reply) co_return reply.failure();
  co_return text_of(*reply);
}

inline async::task<Result<wire::Frame>> echo(std::string self, wire::Frame request) {
  co_return text_reply(request, self, self + " heard " + text_of(request));
}

inline async::task<Result<wire::Frame>> never(wire::Frame) {
  auto event = std::make_shared<async::Event>();
  co_await async::Event::wait(event);
  co_return core::fail(ErrorCode::kInternal, "the event came");
}

inline Handler echo_handler(std::string self) {
  return [self](wire::Frame frame) { return echo(self, std::move(frame)); };
}

// A coroutine's result once it is there.
template <class T>
class Later {
 public:
  Later(async::Executor executor, async::task<T> body)
      : value_(std::make_shared<std::optional<T>>()) {
    boost::asio::co_spawn(std::move(executor), keep(std::move(body), value_),
                          [](std::exception_ptr error) { EXPECT_FALSE(error); });
  }
  bool done() const { return value_->has_value(); }
  T& value() {
    EXPECT_TRUE(done());
    return **value_;
  }

 private:
  static async::task<void> keep(async::task<T> body, std::shared_ptr<std::optional<T>> value) {
    value->emplace(co_await std::move(body));
  }
  std::shared_ptr<std::optional<T>> value_;
};

using Asked = Later<Result<std::string>>;

inline async::task<bool> stop_endpoint(std::shared_ptr<Endpoint> endpoint) {
  co_await endpoint->stop();
  co_return true;
}

}  // namespace troupe::cluster::testing
