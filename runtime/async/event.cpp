// Suspends and resumes the waiter of an Event: stores the coroutine's handler with a work guard
// and, when the event fires, posts the handler instead of calling it.
#include "runtime/async/event.hpp"

#include "runtime/core/check.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace troupe::async {

namespace asio = boost::asio;

template <class Handler>
struct Event::Suspended final : Event::Waiter {
  explicit Suspended(Handler&& one) : handler(std::move(one)) {}
  void resume(boost::system::error_code code) override { std::move(handler)(code); }
  Handler handler;
};

// Stores the suspended waiter in the event.
struct Event::Start {
  template <class WaitHandler>
  void operator()(WaitHandler&& handler, std::shared_ptr<Event> event) const {
    auto slot = asio::get_associated_cancellation_slot(handler);
    event->executor_ = asio::prefer(Executor(asio::get_associated_executor(handler)),
                                    asio::execution::outstanding_work.tracked);
    event->waiter_ = std::make_unique<Suspended<std::decay_t<WaitHandler>>>(std::move(handler));
    if (slot.is_connected()) {
      slot.assign([weak = std::weak_ptr<Event>(event)](asio::cancellation_type) {
        if (auto alive = weak.lock()) alive->on_cancel();
      });
    }
    if (event->settled_) event->complete({});
  }
};

Event::~Event() = default;

task<void> Event::wait(std::shared_ptr<Event> event) {
  TROUPE_CHECK(!event->waiter_, "an event has one waiter");
  auto started =
      asio::async_initiate<const asio::use_awaitable_t<>&, void(boost::system::error_code)>(
          Start{}, asio::use_awaitable, event);
  co_await std::move(started);
}

bool Event::fire() {
  if (settled_) return false;
  settled_ = true;
  complete({});
  return true;
}

void Event::on_cancel() {
  if (settled_ || !waiter_) return;
  const auto self = shared_from_this();
  const CancelHook hook = hook_;  // it may fire the event, which drops `hook_`
  if (hook && !hook()) return;
  settled_ = true;
  complete(asio::error::operation_aborted);
}

void Event::complete(boost::system::error_code code) {
  hook_ = nullptr;
  if (!waiter_) return;
  Executor executor = std::move(executor_);
  executor_ = Executor();
  asio::post(executor, [waiter = std::move(waiter_), code] { waiter->resume(code); });
}

}  // namespace troupe::async
