// What the parts of one controller share: the plan, how far the run has come, and what wakes those
// who wait for it. Owned by the controller, used on its strand.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "actors/controller/run_plan.hpp"
#include "actors/controller/version_starts.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/core/at_exit.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace troupe::actors {

struct RunState {
  RunState(RoleContext given, RunPlan planned, RunListener& hears)
      : context(std::move(given)),
        plan(std::move(planned)),
        listener(hears),
        changed(*context.timers),
        starts(plan.staleness_max) {}
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  RoleContext context;
  const RunPlan plan;
  RunListener& listener;
  async::Notifier changed;  // of anything below
  VersionStarts starts;
  std::uint64_t done = plan.first_update;        // updates that the policy has learned from
  std::uint64_t committed = plan.first_update;   // and that are written down
  std::uint64_t next_issue = plan.first_update;  // first update whose tickets were not asked for
  std::uint64_t issued = plan.first_update;      // updates whose tickets are out
  std::optional<std::uint64_t> awaited;          // the update that the trainer waits for
  async::Scope* scope = nullptr;  // of what goes on beside the update loop, else null
  int whole_steps = 0;                           // under way
  std::map<std::string, std::uint64_t> counts;   // what went another way than planned, by cause

  // A step that is done to its end: an error beside it waits for as long as what this returns
  // lives.
  auto whole_step() {
    ++whole_steps;
    return core::AtExit([this] {
      --whole_steps;
      changed.notify_all();
    });
  }
};

}  // namespace troupe::actors
