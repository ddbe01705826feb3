// Repeats a step of a run while the disk is full: the run pauses, and goes on when there is room.
// Part of the controller, on its strand. Only for steps that may be repeated: commits, checkpoints,
// rows of metrics. When a stop is asked for, it gives up and returns the error.
#pragma once

#include "actors/controller/limits.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/data/limits.hpp"
#include "actors/data/rare_note.hpp"
#include "actors/protocol/containment.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace troupe::actors::controller {

// `what` begins the message to the user: "update 3 cannot be written down".
inline async::task<core::Result<void>> patiently(
    RunState* run, std::string what, std::function<async::task<core::Result<void>>()> step) {
  const std::function<void(const std::string&)> say = [run](const std::string& text) {
    run->listener.on_note(text);
  };
  data::RareNote note(say, *run->context.timers, data::limits::kNotesEvery);
  for (core::Duration pause = data::limits::kDiskPause_min;;
       pause = std::min<core::Duration>(2 * pause, limits::kDiskPause_max)) {
    auto body = step();
    auto done = co_await std::move(body);
    const bool waits =
        !done && reaction_to(AskedFor::kFiles, done.error().code) == Reaction::kPaused;
    if (!waits || run->listener.stop_requested()) co_return done;
    ++run->counts["waits for room"];
    note(what + ": " + done.error().message + "; the run continues when there is room");
    const core::TimePoint again = run->context.timers->now() + pause;
    while (run->context.timers->now() < again && !run->listener.stop_requested())
      co_await async::sleep_for(*run->context.timers, limits::kLookEvery);
  }
}

}  // namespace troupe::actors::controller
