// Runs long or blocking jobs one after another for coroutines: the jobs of a device, an engine, a
// trainer. A coroutine awaits its job and resumes on its own executor. A process runs them on a
// DeviceThread, the simulator on virtual time. Outlives the roles that use it.
//
// Cancelling the awaiting coroutine drops a job that has not begun and waits for one that has: no
// job ever outlives its awaiter, so it may refer to what the awaiter owns.
#pragma once

#include "runtime/async/event.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/thrown.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe::async {

class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  static constexpr const char* kStep = "step";  // of an engine; a micro-batch of a frozen model
  static constexpr const char* kLoad = "load";  // of a role
  static constexpr const char* kWait = "wait";  // for other processes, however long

  // Runs `job()`, which returns a Result. Errors besides the job's own: kOverloaded (too many jobs
  // wait), kClosed, and core::error_of of an exception. `kind`: a literal; jobs of one kind take
  // about as long as each other. Store a lambda in a local variable and move it in (task.hpp says
  // why).
  template <class Job>
  task<std::invoke_result_t<Job&>> run(Job job, const char* kind = kStep) {
    auto item = std::make_shared<Typed<Job>>(std::move(job));
    item->kind = kind;
    auto handed_over = co_await submit(item);
    if (!handed_over) co_return handed_over.failure();
    co_return std::move(*item->result);
  }

 protected:
  struct Item {
    virtual ~Item() = default;
    virtual void execute() noexcept = 0;
    Executor executor;  // of the awaiter
    const char* kind = kStep;
    std::shared_ptr<Event> done = std::make_shared<Event>();
    bool dropped = false;  // never begun, because the queue was closed
  };

 private:
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
      job.reset();  // destroys the captures here, not on whichever thread drops the item last
    }
    std::optional<Job> job;
    std::optional<Outcome> result;
  };

  // Returns once the item was executed. Errors: kOverloaded, kClosed.
  virtual task<core::Result<void>> submit(std::shared_ptr<Item> item) = 0;
};

}  // namespace troupe::async
