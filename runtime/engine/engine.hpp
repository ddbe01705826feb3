// The generation engine: continuous batching over paged KV blocks. A step schedules, builds the
// plan in place, computes it on the team and takes in what was drawn. One owner thread drives it,
// through an EngineDriver (driver.hpp). No step allocates once the batch has its shape. A step
// whose logits are not finite keeps no token: once the caller aborts the named group the others go
// on.
//
//   submit -> waiting group -> (prompt prefilled once, in chunks) -> n running samples -> finished
//
// When blocks run short the youngest group's samples give theirs back and are computed again later
// (preemption by recompute); tokens already sampled stay, so results keep their bits. Weights are
// swapped between steps; each token carries the version that made it.
//
// States. An engine is paused or not; independently of that, parts of it can sleep:
//
//   awake --sleep(kv)--> kv asleep --wake(kv)--> awake
//   awake --sleep(weights, maybe kv)--> weights asleep --wake(weights)--> weights awaited
//         --set_weights--> (kv asleep --wake(kv)-->) awake
//
// So new weights are there before memory for keys and values is taken again: old weights, new
// weights and KV blocks never stand side by side. Any other order is refused (kInvalidArgument) and
// changes nothing. While a part sleeps or weights are awaited, `submit` and `step` are refused
// (kClosed); samples that were unfinished keep their tokens, are computed again later, and can be
// aborted at any time. `set_weights` is refused (kClosed) while the weights sleep. An update in
// pieces (begin, put, finish) happens outside, in a weights::WeightIntake that packs a shadow copy;
// its end is `set_weights`.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/request_check.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/model/kv_pool.hpp"
#include "runtime/model/packed.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::engine {

// Turns a sample's tokens into text for stop strings; the text room's decoder in practice.
class TokenText {
 public:
  virtual ~TokenText() = default;
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
};

class SampleWriter;
class Scheduler;
class StepComputer;
class StepPlan;
struct BlockCopy;
struct Draw;
struct EngineSettings;
struct Slice;

class Engine {
 public:
  // `eos`: end tokens. `text` may be null: then stop strings are refused.
  static core::Result<std::unique_ptr<Engine>> create(
      std::shared_ptr<const model::PackedWeights> weights,
      EngineLimits limits,
      std::vector<std::int32_t> eos,
      const TokenText* text,
      core::TeamRunner& team);
  ~Engine();

  // Errors: kInvalidArgument (empty prompt, id out of range, bad parameter), kData (prompt and
  // max_new_tokens exceed the context), kOverloaded (queue full), kResources (could never fit),
  // kClosed (a part of the engine sleeps). While paused, groups wait.
  core::Result<void> submit(GroupRequest request);

  // Ends the group's unfinished samples at once and returns them as they are, with kAborted.
  // Samples that finished in an earlier step were already returned. Returns nothing for an unknown
  // id. Works in every state.
  std::vector<Sample> abort(core::GroupId group);

  // Runs one step and returns the samples that finished in it, by (group, index). Returns nothing
  // when there is nothing to do or the engine is paused. Errors: kNumeric when logits are not
  // finite (names group and position, see `broken_group`), kClosed when a part of the engine
  // sleeps.
  core::Result<std::vector<Sample>> step();

  // The group that made the last step fail with kNumeric; once it is aborted the others go on. None
  // after a step that did not fail so, and once the group is gone.
  std::optional<core::GroupId> broken_group() const { return broken_; }

  bool idle() const;

  // The tokens that an unfinished sample has drawn so far, for streaming; empty for one that is not
  // here. Good until the next call that changes the engine.
  std::span<const std::int32_t> drawn(core::GroupId group, std::int32_t index) const;
  // All that an unfinished sample holds so far; null for one that is not here. Valid as `drawn` is.
  const Sample* unfinished(core::GroupId group, std::int32_t index) const;

  // No step computes anything until `resume`. Returns what kAbort ended, by (group, index), waiting
  // groups included; the other modes return nothing. A paused engine can be paused again: kKeep
  // after kRecompute changes nothing, the others do what they say.
  std::vector<Sample> pause(PauseMode mode);
  // Errors: kInvalidArgument when the engine is not paused.
  core::Result<void> resume();

  // Releases parts until `wake`: the engine's reference to the weights (their memory is freed when
  // nobody else holds them), and the memory of the KV blocks, which returns to the system at once.
  // Running samples lose their keys and values, as with PauseMode::kRecompute. Errors:
  // kInvalidArgument when no part is named or one of them sleeps already.
  core::Result<MemoryReport> sleep(SleepParts parts);
  // One part at a time: weights, then `set_weights`, then kv. Errors: kInvalidArgument for a part
  // that does not sleep, or kv while weights are missing.
  core::Result<MemoryReport> wake(SleepParts parts);

  EngineState state() const { return state_; }

  // Takes effect for the next step; tokens drawn from then on carry the new version. With
  // kRecompute running samples compute their keys and values again from their tokens, so log-probs
  // have the bits of an engine that never had other weights. With kKeep they go on with those of
  // the older versions: nothing is computed twice, and a sample may hold positions of several
  // versions. Whatever was cached under the old weights is never found again. The same pointer
  // again changes nothing. Errors: kClosed while the weights sleep, kData for weights of another
  // model.
  core::Result<void> set_weights(std::shared_ptr<const model::PackedWeights> weights,
                                 KvAction action);

  // Not while the weights sleep or are awaited (see `state`).
  const model::PackedWeights& weights() const;
  const model::ModelSpec& spec() const { return spec_; }
  EngineCounters counters() const;

  // Wraps or replaces the StepComputer, for fault injection and scripted tests.
  using StepWrap = std::function<std::unique_ptr<StepComputer>(std::unique_ptr<StepComputer>)>;
  void wrap_steps(const StepWrap& wrap);

 private:
  Engine(std::shared_ptr<const model::PackedWeights> weights,
         const EngineSettings& settings,
         std::vector<std::int32_t> eos,
         const TokenText* text,
         core::TeamRunner& team);

  core::Result<void> check_finite(std::span<const Draw> draws);
  void commit(std::span<const Slice> slices, std::span<const Draw> draws);
  core::Result<void> check_awake(std::string_view what) const;
  MemoryReport report_before() const;
  void report_after(MemoryReport& report) const;
  model::KvPool make_pool() const;
  // A block that no table holds: on a device, where decode steps are filled up; else -1.
  std::int32_t spare_block() const { return memory_.on_host() ? -1 : bounds_.blocks; }

  const model::ModelSpec spec_;
  std::shared_ptr<const model::PackedWeights> weights_;  // null while they sleep or are awaited
  EngineState state_;
  const RequestBounds bounds_;
  const int members_;
  core::Memory& memory_;  // of the team
  const std::unique_ptr<SampleWriter> writer_;
  const std::unique_ptr<Scheduler> scheduler_;
  const std::unique_ptr<StepPlan> plan_;
  model::KvPool pool_;
  std::unique_ptr<StepComputer> computer_;
  std::vector<BlockCopy> copies_;
  std::vector<Sample> finished_;  // of the step in progress
  EngineCounters counters_;
  std::optional<core::GroupId> broken_;  // by the last step
};

}  // namespace troupe::engine
