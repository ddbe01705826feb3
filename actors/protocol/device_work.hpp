// Runs a role's jobs on its device thread, and records for `status` which job runs.
// Owned by a role, used on its strand; one job at a time.
#pragma once

#include "actors/protocol/role_shell.hpp"

#include <string>
#include <type_traits>
#include <utility>

namespace troupe::actors {

class DeviceWork {
 public:
  // `idle`: what the role waits for between jobs.
  DeviceWork(const RoleContext& context, std::string idle)
      : context_(context), idle_(std::move(idle)) {
    context_.set_idle(idle_);
  }

  // Runs `job` on the device thread.
  template <class Job>
  async::task<std::invoke_result_t<Job&>> run(const char* what, Job job) {
    doing_ = what;
    auto timed = [activity = context_.activity, what, job = std::move(job)]() mutable {
      const core::Activity::Busy busy(activity, what);
      return job();
    };
    auto result = co_await context_.device->run(std::move(timed), what);
    doing_.clear();
    co_return result;
  }

  std::string state() const { return doing_.empty() ? idle_ : doing_; }

 private:
  RoleContext context_;
  const std::string idle_;
  std::string doing_;  // "" between jobs
};

}  // namespace troupe::actors
