// The generation engine: continuous batching over paged KV blocks. A step selects rows (Scheduler),
// builds a plan of them, computes it on the team, and appends the drawn tokens to their samples.
// One thread drives the engine, through an EngineDriver (driver.hpp). If a step's logits are not
// finite, all its tokens are dropped; once the caller aborts the group at fault, the others go on.
//
//   submit -> waiting group -> (prompt prefilled once, in chunks) -> n running samples -> finished
//
// When no block is free, a sample of the youngest group loses its blocks, and its keys and values
// are recomputed later (preemption). It keeps its sampled tokens, so preemption does not change
// results. Weights are swapped between steps; each token carries the version that computed it.
//
// States. An engine is paused or not; independently of that, parts of it can sleep:
//
//   awake --sleep(kv)--> kv asleep --wake(kv)--> awake
//   awake --sleep(weights, maybe kv)--> weights asleep --wake(weights)--> weights awaited
//         --set_weights--> (kv asleep --wake(kv)-->) awake
//
// So the engine has new weights before it takes memory for keys and values again: old weights, new
// weights and KV blocks are never in memory together. Any other order is refused (kInvalidArgument)
// and changes nothing. While a part sleeps or weights are awaited, `submit` and `step` are refused
// (kClosed). Unfinished samples keep their tokens, are computed again later, and can be aborted at
// any time. `set_weights` is refused (kClosed) while the weights sleep. A weights::WeightIntake
// packs new weights next to the current ones, between steps; `set_weights` then swaps to them.
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
#include <vector>

namespace troupe::engine {

// Decodes tokens to text, for stop strings. Roles implement it with a tokenizer.
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
  // `eos`: the model's end tokens. `text` may be null: then stop strings are refused. Errors: kData
  // (an end token outside the vocabulary), kInvalidArgument, kResources (the KV memory holds no
  // block).
  static core::Result<std::unique_ptr<Engine>> create(
      std::shared_ptr<const model::PackedWeights> weights,
      EngineLimits limits,
      std::vector<std::int32_t> eos,
      const TokenText* text,
      core::TeamRunner& team);
  ~Engine();

  // Errors: kInvalidArgument (empty prompt, token outside the vocabulary, bad parameter, group
  // known already), kData (prompt and max_new_tokens exceed the context), kOverloaded (queue full),
  // kResources (could never fit), kClosed (a part of the engine sleeps). While the engine is
  // paused, groups wait.
  core::Result<void> submit(GroupRequest request);

  // Ends the group. Returns its unfinished samples with the tokens they have, marked kAborted;
  // finished samples were returned by earlier steps. Returns nothing for an unknown id. Works in
  // every state.
  std::vector<Sample> abort(core::GroupId group);

  // Runs one step and returns the samples that finished in it, by (group, index). Returns nothing
  // when there is nothing to do or the engine is paused. Errors: kNumeric when logits are not
  // finite (names group and position, see `broken_group`), kClosed when a part of the engine
  // sleeps.
  core::Result<std::vector<Sample>> step();

  // The group that made the last step fail with kNumeric; once it is aborted, the others go on.
  // Empty if the last step did not fail with kNumeric, or once the group was aborted.
  std::optional<core::GroupId> broken_group() const { return broken_; }

  bool idle() const;

  // The tokens that an unfinished sample has drawn so far; empty if there is no such sample. Valid
  // until the next call that changes the engine.
  std::span<const std::int32_t> drawn(core::GroupId group, std::int32_t index) const;
  // An unfinished sample with all that it has so far; null if there is no such sample. Valid as
  // long as `drawn`.
  const Sample* unfinished(core::GroupId group, std::int32_t index) const;

  // Until `resume`, steps compute nothing. kAbort ends all groups, also waiting ones, and returns
  // their unfinished samples by (group, index); the other modes return nothing. A paused engine can
  // be paused again, in another mode.
  std::vector<Sample> pause(PauseMode mode);
  // Errors: kInvalidArgument when the engine is not paused.
  core::Result<void> resume();

  // Releases parts until `wake`: the engine's reference to the weights (their memory is freed once
  // nobody else holds them), and the memory of the KV blocks, which returns to the system at once.
  // Running samples lose their keys and values, as with PauseMode::kRecompute. Error
  // kInvalidArgument if no part is named, or if a named one is not awake.
  core::Result<MemoryReport> sleep(SleepParts parts);
  // Wakes one part: first the weights (`set_weights` must follow), then kv. Error kInvalidArgument
  // if the part does not sleep, or for kv while weights are missing.
  core::Result<MemoryReport> wake(SleepParts parts);

  EngineState state() const { return state_; }

  // Swaps the weights; tokens of later steps carry the new version. With kRecompute, running
  // samples recompute their keys and values, so new log-probs have the same bits as in an engine
  // that only ever had these weights. With kKeep, they keep them: nothing is computed twice, but a
  // sample may hold keys and values of several versions. Prefixes cached under the old weights are
  // never found again. Passing the current weights changes nothing. Errors: kClosed while the
  // weights sleep, kData for weights of another model, kInvalidArgument for weights in another
  // memory.
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
  MemoryReport report_before() const;
  void report_after(MemoryReport& report) const;
  model::KvPool make_pool() const;
  // On a device: an extra KV block, into which the padding rows of decode steps write. Else -1.
  std::int32_t spare_block() const { return memory_.on_host() ? -1 : bounds_.blocks; }

  const model::ModelSpec spec_;
  std::shared_ptr<const model::PackedWeights> weights_;  // null while they sleep or are awaited
  EngineState state_;
  const RequestBounds bounds_;
  const int members_;
  core::Memory& memory_;  // of the team
  const kernels::KvDtype kv_dtype_;
  const std::unique_ptr<SampleWriter> writer_;
  const std::unique_ptr<Scheduler> scheduler_;
  const std::unique_ptr<StepPlan> plan_;
  model::KvPool pool_;
  std::unique_ptr<StepComputer> computer_;
  std::vector<BlockCopy> copies_;
  std::vector<Sample> finished_;  // of the step in progress
  EngineCounters counters_;
  std::optional<core::GroupId> broken_;  // see broken_group
};

}  // namespace troupe::engine
