// Drives an engine on the engine's thread: callers that sample (the generator role, the server, the
// commands, the benchmarks) submit groups to the driver and receive news of them. Only the driver
// changes the engine.
//
// `turn` first does the work that has arrived since the last turn: aborts, new groups, packing of
// new weights, and the swap to them. Then it runs steps until a sample finishes or
// `TurnBounds::span` is over, so that not every short step costs a round trip between two threads.
// While new weights are packed and samples run, a turn packs one slice and does one step; if no
// sample runs, it packs everything. A turn that swaps weights does no step. If a step fails because
// of one group, only that group ends; any other failure ends all groups.
//
// An idle engine can rest: it returns its KV memory to the system until groups arrive. Callers with
// a single thread use `step` and `run` instead of turns. Bounds are the engine's.
#pragma once

#include "runtime/core/activity.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/engine/group_watch.hpp"
#include "runtime/engine/limits.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::engine {

using EngineMaker = std::function<core::Result<std::unique_ptr<Engine>>(
    std::shared_ptr<const model::PackedWeights>)>;

struct Submission {
  GroupRequest request;
  Watch watch = Watch::kFinished;
};

struct EngineWork {
  std::vector<core::GroupId> aborts{};
  std::vector<Submission> submits{};
  std::shared_ptr<weights::WeightIntake> intake{};  // new weights to pack; null: none
  KvAction kv = KvAction::kRecompute;               // what the swap does with keys and values
  bool rest = false;  // the caller expects no more work: release KV memory once idle
};

struct TurnBounds {
  core::Duration span = limits::kEngineTurn;    // no step starts after it; 0: one step
  core::Duration slice = limits::kWeightSlice;  // time to pack weights in a turn with steps
};

struct EngineTurn {
  std::vector<GroupNews> news;              // one entry per group, ordered by group
  std::optional<core::Version> swapped;     // new weights, used from the next turn on
  std::optional<core::Error> intake_error;  // the intake failed and must be dropped
  EngineCounters counters;
  bool resting = false;  // the engine has released its KV memory
};

class EngineDriver {
 public:
  // `clock` tells when a turn has taken long enough; it outlives the driver.
  EngineDriver(std::unique_ptr<Engine> engine,
               core::TeamRunner& team,
               const core::Clock& clock = core::steady_clock())
      : team_(team), clock_(clock), engine_(std::move(engine)) {}
  // Starts without an engine; `maker` makes it from the first weights. `activity` (may be null)
  // records when the driver packs and when it steps.
  EngineDriver(EngineMaker maker,
               core::TeamRunner& team,
               core::Activity* activity = nullptr,
               const core::Clock& clock = core::steady_clock())
      : maker_(std::move(maker)), team_(team), clock_(clock), activity_(activity) {}

  // Null before the first weights.
  const Engine* engine() const noexcept { return engine_.get(); }
  bool idle() const { return engine_ == nullptr || engine_->idle(); }
  // True if there are unfinished groups and the engine is neither paused nor asleep.
  bool computes() const;

  // Errors: those of Engine::submit; kClosed without weights.
  core::Result<void> submit(GroupRequest request, Watch watch = Watch::kFinished);
  // Ends the group without further news of it.
  void abort(core::GroupId group);

  // Like the functions of Engine, which must exist. `pause` returns news of the groups that it
  // ended.
  std::vector<GroupNews> pause(PauseMode mode);
  core::Result<void> resume() { return engine_->resume(); }
  core::Result<MemoryReport> sleep(SleepParts parts) { return engine_->sleep(parts); }
  core::Result<MemoryReport> wake(SleepParts parts) { return engine_->wake(parts); }
  core::Result<void> set_weights(std::shared_ptr<const model::PackedWeights> weights,
                                 KvAction action) {
    return engine_->set_weights(std::move(weights), action);
  }

  EngineTurn turn(EngineWork work, TurnBounds bounds = {});

  // Runs one step and returns what Engine::step returns. An error ends no group.
  core::Result<std::vector<Sample>> step();
  // Runs steps until `computes` is false; returns all samples that finished.
  core::Result<std::vector<Sample>> run();

 private:
  void pack(const EngineWork& work, const TurnBounds& bounds, EngineTurn& turn);
  core::Result<void> install(std::shared_ptr<const model::PackedWeights> weights, KvAction action);
  void compute(bool one_step, core::Duration span, News& news);
  void fail_groups(const core::Error& error, News& news);

  EngineMaker maker_;
  core::TeamRunner& team_;
  const core::Clock& clock_;
  core::Activity* activity_ = nullptr;
  std::unique_ptr<Engine> engine_;
  GroupWatch watch_;
  bool resting_ = false;
};

}  // namespace troupe::engine
