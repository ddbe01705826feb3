#include "runtime/async/device_thread.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <pthread.h>

#include <algorithm>

namespace troupe::async {

namespace {
const core::SteadyClock kTime{};
}  // namespace

DeviceThread::DeviceThread(std::string name, ThreadHook hook, std::size_t queue_max)
    : name_(std::move(name)),
      queue_max_(queue_max),
      thread_([this, hook](std::stop_token stop) { loop(stop, hook); }) {}

DeviceThread::~DeviceThread() {
  close();
  thread_.request_stop();
  thread_.join();
}

task<core::Result<void>> DeviceThread::submit(std::shared_ptr<Item> item) {
  item->executor = co_await boost::asio::this_coro::executor;
  item->done->set_cancel_hook(
      [this, weak = std::weak_ptr<Item>(item)] { return withdraw(weak.lock()); });
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      co_return core::fail(core::ErrorCode::kClosed, "thread '" + name_ + "' has been closed");
    }
    if (queue_.size() >= queue_max_) {
      co_return core::fail(core::ErrorCode::kOverloaded, "thread '" + name_ + "' already has " +
                                                             std::to_string(queue_max_) +
                                                             " jobs waiting (limit: device jobs)");
    }
    queue_.push_back(item);
  }
  wake_.notify_one();
  co_await Event::wait(item->done);
  if (item->dropped) {
    co_return core::fail(core::ErrorCode::kClosed,
                         "thread '" + name_ + "' was closed before the job began");
  }
  co_return core::Result<void>();
}

// Removes a job from the queue. True when it had not begun.
bool DeviceThread::withdraw(const std::shared_ptr<Item>& item) {
  const std::lock_guard lock(mutex_);
  const auto place = std::find(queue_.begin(), queue_.end(), item);
  if (place == queue_.end()) return false;
  queue_.erase(place);
  return true;
}

void DeviceThread::finish(std::shared_ptr<Item> item) {
  Executor executor = std::move(item->executor);
  boost::asio::post(executor, [done = item->done] { done->fire(); });
}

void DeviceThread::close() {
  std::deque<std::shared_ptr<Item>> dropped;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
  }
  for (auto& item : dropped) {
    item->dropped = true;
    finish(std::move(item));
  }
}

std::size_t DeviceThread::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void DeviceThread::loop(std::stop_token stop, ThreadHook hook) noexcept {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  if (hook) hook();
  for (;;) {
    std::shared_ptr<Item> item;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, stop, [this] { return !queue_.empty(); })) return;
      item = std::move(queue_.front());
      queue_.pop_front();
      running_ = item->kind;
      begun_ = kTime.now();
    }
    item->execute();
    {
      const std::lock_guard lock(mutex_);
      core::Duration& longest = longest_[item->kind];
      longest = std::max(longest, kTime.now() - begun_);
      running_ = nullptr;
    }
    finish(std::move(item));
  }
}

std::string DeviceThread::wedged(core::Duration limit) const {
  const std::lock_guard lock(mutex_);
  if (running_ == nullptr) return "";
  const std::string kind = running_;
  if (kind == kWait) return "";
  const auto known = longest_.find(kind);
  const bool first = known == longest_.end();
  core::Duration allowed = 30 * limit;
  if (kind == kStep) {
    allowed = first ? 10 * limit : std::max(limit, 20 * known->second);
  } else if (kind != kLoad) {
    if (first) return "";
    allowed = std::max(10 * limit, 5 * known->second);
  }
  const core::Duration span = kTime.now() - begun_;
  if (span <= allowed) return "";
  const auto seconds = [](core::Duration time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
  };
  return "a job of thread '" + name_ + "' (" + kind + ") has run for " + seconds(span) +
         " and may run for " + seconds(allowed);
}

}  // namespace troupe::async
