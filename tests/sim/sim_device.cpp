// The queue of jobs and their ends.
#include "tests/sim/sim_device.hpp"

#include "runtime/async/limits.hpp"
#include "runtime/async/run_on.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>

namespace troupe::cluster::sim {

async::task<core::Result<void>> SimDevice::submit(std::shared_ptr<Item> item) {
  item->executor = co_await boost::asio::this_coro::executor;
  item->done->set_cancel_hook(
      [this, weak = std::weak_ptr<Item>(item)] { return withdraw(weak.lock()); });
  if (closed_) co_return core::fail(core::ErrorCode::kClosed, name_ + " has been closed");
  if (queue_.size() >= async::limits::kDeviceJobs_max) {
    co_return core::fail(core::ErrorCode::kOverloaded, name_ + " has too many jobs waiting");
  }
  queue_.push_back(item);
  async::post(thread_, [this, here = here_] {
    if (*here && !running_) begin_next();
  });
  co_await async::Event::wait(item->done);
  if (item->dropped) {
    co_return core::fail(core::ErrorCode::kClosed, name_ + " was closed before the job began");
  }
  co_return core::Result<void>();
}

// Removes a job from the queue. True when it had not begun.
bool SimDevice::withdraw(const std::shared_ptr<Item>& item) {
  const auto place = std::find(queue_.begin(), queue_.end(), item);
  if (place == queue_.end()) return false;
  queue_.erase(place);
  return true;
}

void SimDevice::begin_next() {
  if (queue_.empty()) return;
  running_ = std::move(queue_.front());
  queue_.pop_front();
  const std::shared_ptr<Item> item = running_;
  const core::Duration took = time_.run_job([&item] { item->execute(); });
  if (closed_) return;  // the job has ended its own process
  end_ = time_.arm(thread_, time_.now() + took, [this] { end_running(); });
}

void SimDevice::end_running() {
  finish(std::exchange(running_, nullptr));
  begin_next();
}

void SimDevice::finish(const std::shared_ptr<Item>& item) {
  const async::Executor executor = item->executor;
  item->executor = {};
  async::post(executor, [done = item->done] { done->fire(); });
}

void SimDevice::close() {
  if (std::exchange(closed_, true)) return;
  *here_ = false;
  end_.disarm();
  if (running_) finish(std::exchange(running_, nullptr));
  for (const auto& item : queue_) {
    item->dropped = true;
    finish(item);
  }
  queue_.clear();
}

}  // namespace troupe::cluster::sim
