// A strand with a Scope on it, for servers that are owned from outside: `stop` cancels all children
// and waits for them from another thread. Owned by one server; the io threads outlive it.
#pragma once

#include "runtime/async/io_threads.hpp"
#include "runtime/async/scope.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <functional>
#include <future>
#include <memory>
#include <utility>

namespace troupe::net {

class StrandScope {
 public:
  explicit StrandScope(async::IoThreads& io) : strand_(io.make_strand()), scope_(strand_) {}

  const async::Executor& executor() const noexcept { return strand_; }
  async::Scope& scope() noexcept { return scope_; }  // on the strand alone

  // Starts the first child, from any thread. The child itself begins later.
  void start(async::task<void> child) {
    auto first = std::make_shared<async::task<void>>(std::move(child));
    boost::asio::post(strand_, [this, first] { scope_.spawn("", std::move(*first)); });
  }

  // From a thread that is no io thread; once. `close` runs on the strand after the cancellation.
  void stop(std::function<void()> close) {
    auto ended = std::make_shared<std::promise<void>>();
    auto waiting = ended->get_future();
    auto finished = [ended](std::exception_ptr) { ended->set_value(); };
    boost::asio::co_spawn(strand_, end(this, std::move(close)), std::move(finished));
    waiting.wait();
  }

 private:
  static async::task<void> end(StrandScope* self, std::function<void()> close) {
    self->scope_.cancel();
    close();
    auto joined = co_await self->scope_.join();
    static_cast<void>(joined);
  }

  async::Executor strand_;
  async::Scope scope_;
};

}  // namespace troupe::net
