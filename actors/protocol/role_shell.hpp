// RoleContext, which every role is given when it is made: transport, threads, timers. A role keeps
// a copy and uses it on its strand.
#pragma once

#include "actors/protocol/limits.hpp"
#include "runtime/async/deadline.hpp"
#include "runtime/async/device_queue.hpp"
#include "runtime/async/event.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/scope.hpp"
#include "runtime/async/task.hpp"
#include "runtime/cluster/transport.hpp"
#include "runtime/core/activity.hpp"
#include "runtime/core/team.hpp"

#include <memory>
#include <string_view>

namespace troupe::actors {

struct RoleContext {
  std::shared_ptr<cluster::Transport> transport;
  async::Scope* scope = nullptr;         // of the role's coroutines; outlives the role
  async::DeviceQueue* device = nullptr;  // long jobs; null for roles without any
  async::Timers* timers = nullptr;
  core::Duration call_deadline = limits::kRoundDeadline;
  core::TeamRunner* team = nullptr;    // the compute pool, used on the device thread
  core::Activity* activity = nullptr;  // records what the role spends its time on

  // A copy with another deadline for calls.
  RoleContext with_deadline(core::Duration deadline) const {
    RoleContext other = *this;
    other.call_deadline = deadline;
    return other;
  }
  // Says what the role waits for between jobs.
  void set_idle(std::string_view cause) const {
    if (activity != nullptr) activity->set_idle(cause);
  }
};

}  // namespace troupe::actors
