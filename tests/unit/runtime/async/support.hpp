// What the coroutine tests share: run coroutines on one io_context until nothing is left to do. No
// test sleeps; a coroutine that still waits when the context runs dry shows as `not finished`.
#pragma once

#include "runtime/async/task.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::async::testing {

enum class End { kNot, kReturned, kCancelled, kThrew };

template <class T>
task<void> record(task<T> body, std::shared_ptr<std::optional<T>> value) {
  value->emplace(co_await std::move(body));
}

// A coroutine that was started on a context, its outcome, and the means to cancel it.
template <class T>
class Running {
 public:
  Running(boost::asio::io_context& context, task<T> body)
      : value_(std::make_shared<std::optional<T>>()),
        end_(std::make_shared<End>(End::kNot)),
        signal_(std::make_shared<boost::asio::cancellation_signal>()) {
    auto ended = [end = end_, keep = signal_](std::exception_ptr error) {
      *end = End::kReturned;
      if (!error) return;
      *end = End::kThrew;
      try {
        std::rethrow_exception(error);
      } catch (const boost::system::system_error& thrown) {
        if (thrown.code() == boost::asio::error::operation_aborted) *end = End::kCancelled;
      } catch (...) {
      }
    };
    boost::asio::co_spawn(context, record(std::move(body), value_),
                          boost::asio::bind_cancellation_slot(signal_->slot(), std::move(ended)));
  }

  void cancel() { signal_->emit(boost::asio::cancellation_type::terminal); }
  End end() const { return *end_; }
  T& value() { return value_->value(); }

 private:
  std::shared_ptr<std::optional<T>> value_;
  std::shared_ptr<End> end_;
  std::shared_ptr<boost::asio::cancellation_signal> signal_;
};

// Runs `body` alone to its end and gives its value. The context lives as long as the program: the
// thread that posted the last handler may still be inside post() when that handler has run.
template <class T>
T run_alone(task<T> body) {
  static std::list<boost::asio::io_context> contexts;
  boost::asio::io_context& context = contexts.emplace_back();
  Running<T> running(context, std::move(body));
  context.run();
  EXPECT_EQ(running.end(), End::kReturned);
  return std::move(running.value());
}

// Lets every other ready handler of the executor run first.
inline task<void> yield() {
  auto executor = co_await boost::asio::this_coro::executor;
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
}

}  // namespace troupe::async::testing
