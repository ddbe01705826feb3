// A strand with a Scope of coroutines on it, for a server whose owner lives on another thread:
// `stop` cancels all coroutines and waits for them. Owned by one server; the io threads outlive it.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/async/scope.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <memory>
#include <utility>

namespace troupe::net {

class StrandScope {
 public:
  explicit StrandScope(async::IoThreads& io) : strand_(io.make_strand()), scope_(strand_) {}

  const async::Executor& executor() const noexcept { return strand_; }
  async::Scope& scope() noexcept { return scope_; }  // use it on the strand only

  // Starts the first coroutine; it begins after this call has returned. Any thread.
  void start(async::task<void> child) {
    auto first = std::make_shared<async::task<void>>(std::move(child));
    boost::asio::post(strand_, [this, first] { scope_.spawn("", std::move(*first)); });
  }

  // Cancels all coroutines and waits for them. Idempotent. Call it from one thread that is no io
  // thread.
  void stop() {
    if (std::exchange(stopped_, true)) return;
    boost::asio::co_spawn(strand_, end(), boost::asio::use_future).wait();
  }

 private:
  async::task<void> end() {
    scope_.cancel();
    auto joined = co_await scope_.join();
    static_cast<void>(joined);
  }

  async::Executor strand_;
  async::Scope scope_;
  bool stopped_ = false;
};

// Decrements a server's count of connections when it is destroyed.
struct Counted {
  std::size_t& count;
  ~Counted() { --count; }
};

}  // namespace troupe::net
