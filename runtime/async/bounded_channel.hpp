// A queue between coroutines that can never grow past its bound: a full queue makes the sender wait,
// a closed one wakes both sides. Owned by the receiver. All calls are made on one strand (senders
// elsewhere post first). Bound: `capacity`, fixed at construction; waiting senders queue in order.
//
// Not Asio's channel: closing that one leaves blocked senders asleep (docs/adr/0001).
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/async/deadline.hpp"
#include "runtime/async/listed.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/result.hpp"

namespace troupe::async {

template <class T>
class BoundedChannel {
 public:
  // `name` goes into error messages.
  BoundedChannel(Timers& timers, std::string name, std::size_t capacity)
      : timers_(timers), name_(std::move(name)), capacity_(capacity) {
    TROUPE_CHECK(capacity >= 1, "a channel holds at least one value");
  }
  BoundedChannel(const BoundedChannel&) = delete;
  BoundedChannel& operator=(const BoundedChannel&) = delete;
  ~BoundedChannel() {
    TROUPE_CHECK(senders_.empty() && receivers_.empty(), "a channel was left with waiters");
  }

  // Waits while full. Error: kClosed, or kDeadline when `deadline` passes; the value was not sent.
  task<core::Result<void>> send(T value, Deadline deadline) {
    if (closed_) co_return core::fail(closed_error());
    if (accepts()) {
      put(std::move(value));
      co_return core::Result<void>();
    }
    auto waiter = std::make_shared<Sender>();
    waiter->value.emplace(std::move(value));
    const Listed<Sender> listed(senders_, waiter);
    core::Error late = late_error("room in");
    auto sent = co_await take_until<bool>(timers_, waiter->done, deadline, late);
    if (!sent) co_return sent.failure();
    co_return core::Result<void>();
  }

  // Sends now or not at all. Error: kOverloaded when full, kClosed.
  core::Result<void> try_send(T value) {
    if (closed_) return core::fail(closed_error());
    if (!accepts()) {
      return core::fail(core::ErrorCode::kOverloaded,
                        name_ + " is full (" + std::to_string(capacity_) + " waiting)");
    }
    put(std::move(value));
    return {};
  }

  // Waits while empty. After `close`, first drains what is queued, then returns kClosed.
  task<core::Result<T>> receive(Deadline deadline) {
    if (auto value = try_receive()) co_return std::move(*value);
    if (closed_) co_return core::fail(closed_error());
    auto waiter = std::make_shared<Receiver>();
    const Listed<Receiver> listed(receivers_, waiter);
    core::Error late = late_error("a value in");
    auto taken = co_await take_until<T>(timers_, waiter->done, deadline, late);
    co_return taken;
  }

  std::optional<T> try_receive() {
    if (queue_.empty()) return std::nullopt;
    std::optional<T> value(std::move(queue_.front()));
    queue_.pop_front();
    admit_sender();
    return value;
  }

  // Wakes every waiter with kClosed; what is queued stays to be received. Idempotent.
  void close() {
    closed_ = true;
    for (auto& waiter : receivers_) waiter->done->set(core::fail(closed_error()));
    for (auto& waiter : senders_) waiter->done->set(core::fail(closed_error()));
  }

  std::size_t size() const noexcept { return queue_.size(); }
  std::size_t capacity() const noexcept { return capacity_; }
  bool closed() const noexcept { return closed_; }

 private:
  struct Sender {
    std::optional<T> value;
    std::shared_ptr<Oneshot<core::Result<bool>>> done =
        std::make_shared<Oneshot<core::Result<bool>>>();
  };
  struct Receiver {
    std::shared_ptr<Oneshot<core::Result<T>>> done = std::make_shared<Oneshot<core::Result<T>>>();
  };

  // A sender that waits keeps its turn: nobody overtakes it.
  bool accepts() const {
    for (const auto& waiter : senders_) {
      if (!waiter->done->settled()) return false;
    }
    return queue_.size() < capacity_;
  }

  void put(T value) {
    for (auto& waiter : receivers_) {
      if (waiter->done->settled()) continue;
      waiter->done->set(core::Result<T>(std::move(value)));
      return;
    }
    queue_.push_back(std::move(value));
  }

  void admit_sender() {
    for (auto& waiter : senders_) {
      if (waiter->done->settled()) continue;
      queue_.push_back(std::move(*waiter->value));
      waiter->done->set(true);
      return;
    }
  }

  core::Error closed_error() const { return {core::ErrorCode::kClosed, name_ + " is closed"}; }
  core::Error late_error(const char* what) const {
    return {core::ErrorCode::kDeadline, std::string("no ") + what + " " + name_ + " in time"};
  }

  Timers& timers_;
  const std::string name_;
  const std::size_t capacity_;
  std::deque<T> queue_;
  std::list<std::shared_ptr<Sender>> senders_;
  std::list<std::shared_ptr<Receiver>> receivers_;
  bool closed_ = false;
};

}  // namespace troupe::async
