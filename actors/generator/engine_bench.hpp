// The engine on its device thread: one turn does what has piled up since the last one (cuts, new
// groups, a slice of packing new weights, the swap) and then steps until a sample is done, at most
// for kEngineTurn and the step at hand, so that short steps do not each cost a way between two
// threads. While the engine has samples to go on with, packing takes at most kWeightSlice of a turn
// and is followed by one step; with nothing to run it is done at once. A swap ends its turn. Made
// without an engine: the first weights make it. An engine whose work has ended can be asked to
// rest: the memory of its keys and values goes back to the system until groups come. Shared with
// the jobs; used on the device thread.
#pragma once

#include "runtime/core/activity.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::actors {

using EngineMaker = std::function<core::Result<std::unique_ptr<engine::Engine>>(
    std::shared_ptr<const model::PackedWeights>)>;

struct EngineWork {
  std::vector<core::GroupId> aborts;
  std::vector<engine::GroupRequest> submits;
  std::shared_ptr<weights::WeightIntake> intake;  // null: none on its way
  engine::KvAction kv = engine::KvAction::kRecompute;
  bool rest = false;  // nothing more is known of: sleep once idle
  // A group on whose account a step fails is refused and the others go on; else the turn fails.
  bool set_aside = false;
};

struct EngineTurn {
  std::vector<engine::Sample> finished;
  // Groups that the engine does not take, or that fail on their own account.
  std::vector<std::pair<core::GroupId, core::Error>> refused;
  std::optional<core::Version> swapped;     // the engine computes with these from the next turn on
  std::optional<core::Error> intake_error;  // the intake is of no more use
  engine::EngineCounters counters;
  bool resting = false;  // its keys and values sleep
};

class EngineBench {
 public:
  // `activity` may be null.
  EngineBench(EngineMaker maker, core::TeamRunner& team, core::Activity* activity)
      : maker_(std::move(maker)), team_(team), activity_(activity) {}

  // With an engine that exists already.
  EngineBench(std::unique_ptr<engine::Engine> engine, core::TeamRunner& team)
      : team_(team), activity_(nullptr), engine_(std::move(engine)) {}

  // Null before the first weights.
  engine::Engine* engine() noexcept { return engine_.get(); }

  // Errors: those of Engine::step that concern all groups, and of making the engine.
  core::Result<EngineTurn> turn(EngineWork work);

 private:
  core::Result<void> pack(const EngineWork& work, EngineTurn& turn);
  core::Result<void> step(const EngineWork& work, EngineTurn& turn);
  core::Result<void> wake_for(const EngineWork& work);
  core::Result<void> rest_after(const EngineWork& work, EngineTurn& turn);

  EngineMaker maker_;
  core::TeamRunner& team_;
  core::Activity* activity_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace troupe::actors
