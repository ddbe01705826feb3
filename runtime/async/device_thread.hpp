// One thread that runs long or blocking jobs one after another: the device queue of a process.
// Owned by the node, outlives the roles that use it. Bound: `queue_max` waiting jobs; one more is
// kOverloaded at once.
#pragma once

#include "runtime/async/device_queue.hpp"
#include "runtime/async/limits.hpp"
#include "runtime/core/clock.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace troupe::async {

class DeviceThread final : public DeviceQueue {
 public:
  using ThreadHook = void (*)();

  // `hook` is called first on the thread; it flushes denormals in practice.
  explicit DeviceThread(std::string name,
                        ThreadHook hook = nullptr,
                        std::size_t queue_max = limits::kDeviceJobs_max);
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;
  ~DeviceThread() override;  // close(), then waits for the running job

  // Refuses new jobs and fails the waiting ones with kClosed. Safe on any thread; idempotent.
  void close();

  std::size_t waiting() const;

  // What is wrong with the running job when it takes so long that it must be wedged; else "". A
  // step may take `limit`, or 20 times as long as the longest before it, the first one 10 times the
  // limit; loading a role 30 times the limit. Any other kind may take 10 times the limit, or 5
  // times as long as the longest before it; the first one is not judged, and no wait for others.
  // Safe on any thread.
  std::string wedged(core::Duration limit) const;
  const std::string& name() const noexcept { return name_; }

 private:
  task<core::Result<void>> submit(std::shared_ptr<Item> item) override;
  bool withdraw(const std::shared_ptr<Item>& item);
  void loop(std::stop_token stop, ThreadHook hook) noexcept;
  static void finish(std::shared_ptr<Item> item);

  const std::string name_;
  const std::size_t queue_max_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::shared_ptr<Item>> queue_;
  bool closed_ = false;
  const char* running_ = nullptr;  // kind of the running job
  core::TimePoint begun_{};
  std::map<std::string, core::Duration> longest_;  // by kind, of jobs that have ended
  std::jthread thread_;
};

}  // namespace troupe::async
