// One thread that runs long or blocking jobs one after another for coroutines: a device, an engine,
// a trainer. A coroutine awaits its job and resumes on its own executor. Owned by the node,
// outlives the roles that use it. Bound: `queue_max` waiting jobs; one more is kOverloaded at once.
//
// Cancelling the awaiting coroutine drops a job that has not begun and waits for one that has: no
// job ever outlives its awaiter, so it may refer to what the awaiter owns.
#pragma once

#include "runtime/async/event.hpp"
#include "runtime/async/limits.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/thrown.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace troupe::async {

class DeviceThread {
 public:
  using ThreadHook = void (*)();

  // `hook` is called first on the thread; it flushes denormals in practice.
  explicit DeviceThread(std::string name,
                        ThreadHook hook = nullptr,
                        std::size_t queue_max = limits::kDeviceJobs_max);
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;
  ~DeviceThread();  // close(), then waits for the running job

  // Runs `job()`, which returns a Result, on the thread. Errors beside the job's own: kOverloaded,
  // kClosed, and what core::error_of says of an exception. Store a lambda in a local and move it
  // in.
  template <class Job>
  task<std::invoke_result_t<Job&>> run(Job job) {
    auto item = std::make_shared<Typed<Job>>(std::move(job));
    auto handed_over = co_await submit(item);
    if (!handed_over) co_return handed_over.failure();
    co_return std::move(*item->result);
  }

  // Refuses new jobs and fails the waiting ones with kClosed. Safe on any thread; idempotent.
  void close();

  std::size_t waiting() const;
  const std::string& name() const noexcept { return name_; }

 private:
  struct Item {
    virtual ~Item() = default;
    virtual void execute() noexcept = 0;
    Executor executor;
    std::shared_ptr<Event> done = std::make_shared<Event>();
    bool dropped = false;  // never begun, because the thread was closed
  };

  template <class Job>
  struct Typed final : Item {
    using Outcome = std::invoke_result_t<Job&>;
    explicit Typed(Job body) : job(std::move(body)) {}
    void execute() noexcept override {
      try {
        result.emplace((*job)());
      } catch (const std::exception& thrown) {
        result.emplace(core::fail(core::error_of(thrown)));
      } catch (...) {
        result.emplace(core::fail(core::ErrorCode::kInternal, "an unknown exception"));
      }
      job.reset();  // captures end here, not on whichever thread drops the item last
    }
    std::optional<Job> job;
    std::optional<Outcome> result;
  };

  task<core::Result<void>> submit(std::shared_ptr<Item> item);
  bool withdraw(const std::shared_ptr<Item>& item);
  void loop(std::stop_token stop, ThreadHook hook) noexcept;
  static void finish(std::shared_ptr<Item> item);

  const std::string name_;
  const std::size_t queue_max_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<std::shared_ptr<Item>> queue_;
  bool closed_ = false;
  std::jthread thread_;
};

}  // namespace troupe::async
