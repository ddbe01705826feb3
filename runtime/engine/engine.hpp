// The generation engine: continuous batching over paged KV blocks. One owner thread drives it step
// by step; numeric work runs on the team it was given. No step allocates once the batch has its
// shape.
//
//   submit -> waiting group -> (prompt prefilled once, in chunks) -> n running samples -> finished
//
// When blocks run short the youngest group's samples give theirs back and are computed again later
// (preemption by recompute); tokens already sampled stay, so results keep their bits. Weights are
// swapped between steps; each token carries the version that made it.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/model/packed.hpp"

#include <memory>
#include <span>
#include <vector>

namespace troupe::engine {

// Turns a sample's tokens into text for stop strings; the text room's decoder in practice.
class TokenText {
 public:
  virtual ~TokenText() = default;
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
};

class Engine {
 public:
  // `eos`: end tokens. `text` may be null: then stop strings are refused.
  static core::Result<std::unique_ptr<Engine>> create(
      std::shared_ptr<const model::PackedWeights> weights,
      EngineLimits limits,
      std::vector<std::int32_t> eos,
      const TokenText* text,
      core::TeamRunner& team);
  virtual ~Engine() = default;

  // Errors: kInvalidArgument (empty prompt, id out of range, bad parameter), kData (prompt and
  // max_new_tokens exceed the context), kOverloaded (queue full), kResources (could never fit).
  virtual core::Result<void> submit(GroupRequest request) = 0;

  // Ends the group's unfinished samples at once; they come back with what they have, kAborted.
  // Samples that had finished in an earlier step were already returned. Unknown ids give nothing.
  virtual std::vector<Sample> abort(core::GroupId group) = 0;

  // Runs one step and returns the samples that finished in it, by (group, index). Nothing to do
  // returns nothing. Errors: kNumeric when logits are not finite (names group and position).
  virtual core::Result<std::vector<Sample>> step() = 0;

  virtual bool idle() const = 0;

  // The tokens that an unfinished sample has drawn so far, for streaming; empty for one that is not
  // here. Good until the next call that changes the engine.
  virtual std::span<const std::int32_t> drawn(core::GroupId group, std::int32_t index) = 0;

  // Takes effect for the next step; tokens drawn from then on carry the new version. With kRecompute
  // running samples compute their keys and values again from their tokens, so log-probs have the
  // bits of an engine that never had other weights. With kKeep they go on with those of the older
  // versions: nothing is computed twice, and a sample may hold positions of several versions.
  virtual void set_weights(std::shared_ptr<const model::PackedWeights> weights,
                           KvAction action) = 0;

  virtual const model::PackedWeights& weights() const = 0;
  virtual EngineCounters counters() const = 0;
};

}  // namespace troupe::engine
