// The state that the controller's parts share: the plan, the progress of the run, and a notifier of
// its changes. Owned by the controller, used on its strand.
#pragma once

#include "actors/controller/grace.hpp"
#include "actors/controller/prompt_rows.hpp"
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

namespace troupe::actors::controller {

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
  PromptRows prompts;                      // of the open tickets
  std::uint64_t done = plan.first_update;  // updates that the policy has learned from
  // Updates that policy and critic had learned from when the session began: the first of the
  // session, unless they live on from an earlier head. Until then nothing is trained, sampled for
  // an evaluation or saved: updates and evaluations are taken from the experience log, and the
  // policy repeats its answers.
  std::uint64_t known = plan.first_update;
  std::uint64_t committed = plan.first_update;   // of these, the ones that data has committed
  std::uint64_t next_issue = plan.first_update;  // first update whose tickets are not requested yet
  std::uint64_t issued = plan.first_update;      // updates whose tickets are out
  std::optional<std::uint64_t> awaited;          // the update that the trainer waits for
  async::Scope* scope = nullptr;      // for coroutines alongside the update loop; null without one
  int whole_steps = 0;                // steps under way that must not be broken off
  Grace grace;                        // which step is under way, and how long it takes
  std::optional<core::Error> ending;  // error with which the loop ends after its update
  // The weights after that many updates give logits that are not finite.
  std::optional<std::uint64_t> diverged;
  std::string regroup;    // why to restart from the next checkpoint; "": no need
  bool given_up = false;  // there is no time to wait for them, or to save
  std::map<std::string, std::uint64_t> counts;  // events that were not planned, by cause

  // Marks a step that must not be broken off: while the returned object lives, an error outside the
  // update loop does not end the run.
  auto whole_step() {
    ++whole_steps;
    return core::AtExit([this] {
      --whole_steps;
      changed.notify_all();
    });
  }
};

}  // namespace troupe::actors::controller
