// The coroutine type of the runtime. A task starts when it is awaited or spawned in a Scope, runs
// on its spawner's executor (a role's strand), and ends with a value, an expected failure inside a
// Result, or by unwinding with `operation_aborted` when it is cancelled: nothing else unwinds.
//
// Rules that g++ 12 and the language impose: take parameters by value; write no lambda with
// captures and no aggregate temporary inside a `co_await` expression (store it in a local and move
// it in); use no capturing lambda as a coroutine; hold no lock and no thread-local over a
// `co_await`.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <optional>
#include <utility>

namespace troupe::async {

template <class T>
using task = boost::asio::awaitable<T>;

using Executor = boost::asio::any_io_executor;

namespace detail {
// Wraps a task with a value as one without, which stores the value in `out`.
template <class T>
task<void> store(task<T> body, std::optional<T>* out) {
  out->emplace(co_await std::move(body));
}
}  // namespace detail

}  // namespace troupe::async
