// The weights of a model at stage 3. A rank keeps the master values of its blocks
// (block_shards.hpp) and no panels. During a pass the ranks gather one part of the model after the
// other, forward and backward, pack it, and give its memory back when it is computed. The stores
// keep their addresses, so whoever computes notices nothing; pages that are not needed belong to
// the system. Host memory only. Owned by the model under training, used on its thread; numeric work
// on the team. Memory: its blocks, the largest part with its panels, and the staging.
#pragma once

#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/ranks/rank_passes.hpp"
#include "runtime/learn/ranks/shard_mover.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/weights_gate.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::learn {

class ShardedWeights final : public model::WeightsGate, public RankPasses {
 public:
  // All outlive the object. `master` is whole, and stays so until the first pass. Every weight is
  // trained.
  ShardedWeights(RankGroup& group,
                 model::ParamStore& master,
                 kernels::PanelDtype dtype,
                 core::TeamRunner& team);

  // Panels that a pass fills part by part, and that say so (PackedWeights::gate).
  std::shared_ptr<const model::PackedWeights> panels(core::Version version);

  void begin_pass() override;
  core::Result<void> finish_pass(bool backward) override;
  void watch_back(Done done) override { done_ = std::move(done); }

  void open(std::int64_t part, bool backward) override;
  // An error of what watches the way back comes with the next call.
  void close(std::int64_t part, bool backward) noexcept override;

  // Calls `see` for all weights, each once: one part after the other, which lies at `flat +
  // part.begin` meanwhile. All ranks call it, between passes.
  using See = std::function<void(core::Range part, const float* flat)>;
  core::Result<void> each_part(const See& see);

  // Makes all of the master values present, until the next pass. All ranks call it.
  core::Result<void> gather_all();
  bool whole() const { return whole_; }
  // Gives the other ranks' blocks back. All ranks call it, before each reads its blocks.
  void let_go();

  // For a state: which blocks are whose, and this rank's blocks of some turns, on the host.
  const BlockShards& shards() const { return mover_.shards(); }
  void read_own(core::Range turns, float* to);
  void write_own(core::Range turns, const float* from);
  // Gives all master values to `use` on rank 0, from first to last, a piece at a time. All ranks
  // call it; what is not whole stays so.
  using Use = std::function<void(core::Range place, const float* numbers)>;
  core::Result<void> bring_to_first(const Use& use);

 private:
  core::Range turns_of(core::Range elements) const;
  core::Result<void> gather(core::Range turns);
  void forget(core::Range turns) noexcept;
  core::Result<void> gather_part(std::int64_t part);
  std::int64_t place_of(std::int64_t part, bool backward) const;
  core::Result<void> went_back(std::int64_t part) const;

  RankGroup& group_;
  model::ParamStore& master_;
  core::TeamRunner& team_;
  ShardMover mover_;
  const std::vector<std::vector<core::Range>> parts_;
  std::shared_ptr<model::PackedWeights> panels_;
  core::Buffer<float> mine_;  // this rank's blocks of what is gathered
  std::int64_t next_ = 0;     // the pass's next part: forward ones, then backward ones
  bool whole_ = true;
  Done done_;
  core::Result<void> going_;  // an error of done_
};

}  // namespace troupe::learn
