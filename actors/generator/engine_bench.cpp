// One turn of the engine.
#include "actors/generator/engine_bench.hpp"

#include "actors/protocol/role_shell.hpp"
#include "runtime/async/limits.hpp"
#include "runtime/core/check.hpp"
#include "runtime/engine/limits.hpp"

namespace troupe::actors {
core::Result<EngineTurn> EngineBench::turn(EngineWork work) {
  EngineTurn turn;
  TROUPE_CHECK(engine_ != nullptr || (work.submits.empty() && work.aborts.empty()),
               "groups run once there are weights");
  for (const core::GroupId id : work.aborts)
    engine_->abort(id);  // what it had drawn is not used
  TROUPE_TRY(wake_for(work));
  for (engine::GroupRequest& request : work.submits) {
    const core::GroupId id = request.id;
    const auto taken = engine_->submit(std::move(request));
    if (!taken) turn.refused.emplace_back(id, taken.error());
  }
  if (work.intake) TROUPE_TRY(pack(work, turn));
  if (engine_ != nullptr) {
    // A step that fails takes its turn's outcome with it; the swap must be told of.
    if (!turn.swapped) TROUPE_TRY(step(work, turn));
    TROUPE_TRY(rest_after(work, turn));
    turn.counters = engine_->counters();
  }
  return turn;
}

core::Result<void> EngineBench::wake_for(const EngineWork& work) {
  if (work.submits.empty() || !engine_->state().kv_asleep) return {};
  TROUPE_TRY(engine_->wake({.kv = true}));
  return {};
}

core::Result<void> EngineBench::rest_after(const EngineWork& work, EngineTurn& turn) {
  if (work.rest && engine_->idle() && !engine_->state().kv_asleep) {
    TROUPE_TRY(engine_->sleep({.kv = true}));
  }
  turn.resting = engine_->state().kv_asleep;
  return {};
}

core::Result<void> EngineBench::pack(const EngineWork& work, EngineTurn& turn) {
  const MaybeBusy guard(activity_, "pack");
  const bool runs = engine_ != nullptr && !engine_->idle();
  for (bool done = false; !done;) {
    const core::Duration budget =
        runs ? engine::limits::kWeightSlice : async::limits::kCallDeadline;
    const auto advanced = work.intake->advance(team_, budget);
    if (!advanced) {
      turn.intake_error = advanced.error();
      return {};
    }
    done = *advanced;
    if (!done && runs) return {};  // the next slice comes after a step
  }
  auto weights = work.intake->take();
  const core::Version version = weights->version();
  if (engine_ == nullptr) {
    TROUPE_TRY_ASSIGN(made, maker_(std::move(weights)));
    engine_ = std::move(made);
  } else {
    const auto set = engine_->set_weights(std::move(weights), work.kv);
    if (!set) {
      turn.intake_error = set.error();
      return {};
    }
  }
  turn.swapped = version;
  return {};
}

// Until a sample is done or the turn is over; one step between two slices of packing.
core::Result<void> EngineBench::step(const EngineWork& work, EngineTurn& turn) {
  const auto end = std::chrono::steady_clock::now() + engine::limits::kEngineTurn;
  const auto computes = [this] {
    const engine::EngineState state = engine_->state();
    return !engine_->idle() && state.awake() && !state.paused;
  };
  const MaybeBusy guard(computes() ? activity_ : nullptr, "step");
  while (computes() && turn.finished.empty()) {
    auto finished = engine_->step();
    if (!finished) {
      const auto broken = engine_->broken_group();
      if (!broken || !work.set_aside) return finished.failure();
      engine_->abort(*broken);  // the others go on
      turn.refused.emplace_back(*broken, finished.error());
      break;
    }
    turn.finished = std::move(*finished);
    if (work.intake || std::chrono::steady_clock::now() >= end) break;
  }
  return {};
}

}  // namespace troupe::actors
