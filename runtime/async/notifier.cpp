#include "runtime/async/notifier.hpp"

namespace troupe::async {

void Notifier::notify_all() {
  for (auto& waiter : waiters_)
    waiter->set(true);
}

task<bool> Notifier::wait(Deadline deadline) {
  auto signal = std::make_shared<Signal>();
  const Listed<Signal> listed(waiters_, signal);
  const core::Error late{core::ErrorCode::kDeadline, ""};
  auto woken = co_await take_until<bool>(timers_, signal, deadline, late);
  co_return woken.has_value();
}

}  // namespace troupe::async
