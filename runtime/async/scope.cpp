#include "runtime/async/scope.hpp"

#include "runtime/async/thrown.hpp"
#include "runtime/core/check.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <exception>

namespace troupe::async {

namespace asio = boost::asio;

namespace {
task<core::Result<void>> as_result(task<void> child) {
  co_await std::move(child);
  co_return core::Result<void>();
}
}  // namespace

Scope::Scope(Executor executor) : executor_(std::move(executor)) {}

Scope::~Scope() {
  TROUPE_CHECK(children_.empty(), "a scope was left before its children ended");
}

void Scope::spawn(std::string name, task<void> child) {
  spawn(std::move(name), as_result(std::move(child)));
}

void Scope::spawn(std::string name, task<core::Result<void>> child) {
  if (cancelled_) return;
  Child& added = children_.emplace_back();
  added.name = std::move(name);
  added.body = std::move(child);
  asio::post(executor_, [this, place = std::prev(children_.end())] { start(place); });
}

void Scope::start(Place place) {
  if (cancelled_) return finish(place);
  place->started = true;
  // Posted, because the handler runs while the coroutine still ends, and the child's signal must
  // outlive that.
  auto ended = [this, place](std::exception_ptr) {
    asio::post(executor_, [this, place] { finish(place); });
  };
  asio::co_spawn(executor_, supervise(this, place),
                 asio::bind_cancellation_slot(place->signal.slot(), std::move(ended)));
}

// Awaits the child and stores its error or exception in `place->error`; never throws.
task<void> Scope::supervise(Scope* scope, Place place) {
  auto& error = place->error;
  try {
    auto result = co_await std::move(place->body);
    if (!result) error = result.error();
  } catch (const boost::system::system_error& thrown) {
    const bool unwound = thrown.code() == asio::error::operation_aborted && scope->cancelled_;
    if (!unwound) error = error_of(thrown);
  } catch (const std::exception& thrown) {
    error = error_of(thrown);
  } catch (...) {
    error = core::Error{core::ErrorCode::kInternal, "an unknown exception"};
  }
  co_await asio::this_coro::throw_if_cancelled(false);
}

void Scope::finish(Place place) {
  std::optional<core::Error> error = std::move(place->error);
  if (error && !place->name.empty()) error = error->within(place->name);
  children_.erase(place);
  if (error && !error_) {
    error_ = std::move(error);
    if (error_hook_) error_hook_(*error_);
    cancel();
  }
  if (children_.empty() && empty_) empty_->fire();
}

void Scope::cancel() {
  if (cancelled_) return;
  cancelled_ = true;
  for (auto& child : children_) {
    if (child.started) child.signal.emit(asio::cancellation_type::terminal);
  }
}

task<core::Result<void>> Scope::join() {
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) cancel();
  while (!children_.empty()) {
    TROUPE_CHECK(!empty_, "a scope is joined by one coroutine at a time");
    empty_ = std::make_shared<Event>();
    empty_->set_cancel_hook([this] {
      cancel();
      return false;
    });
    co_await Event::wait(empty_);
    empty_ = nullptr;
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (error_) co_return core::fail(*error_);
  co_return core::Result<void>();
}

task<core::Result<void>> all(std::vector<task<core::Result<void>>> tasks) {
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  Scope scope(co_await asio::this_coro::executor);
  for (auto& one : tasks)
    scope.spawn("", std::move(one));
  auto result = co_await scope.join();
  co_await asio::this_coro::throw_if_cancelled(throws);
  co_return result;
}

}  // namespace troupe::async
