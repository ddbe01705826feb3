// The weights of a model at stage 3. A rank keeps the master values of its blocks
// (block_shards.hpp), on the team's device or, with offload, in host memory. During a pass the
// ranks gather one part of the model after the other, forward and backward, into a room that all
// parts use in turn (part_room.hpp), and pack it there. Blocks on the host are gathered there and
// sent to the device, which meanwhile computes the part before. Owned by the model under training,
// used on its thread; numeric work on the team. Memory: its blocks; in the team's, the largest part
// with its panels, and the staging. The whole store, in host memory, has numbers only when they are
// asked for.
#pragma once

#include "runtime/learn/ranks/lane_exchange.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/ranks/rank_passes.hpp"
#include "runtime/learn/ranks/shard_mover.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/part_room.hpp"
#include "runtime/model/weights_gate.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace troupe::learn {

class ShardedWeights final : public model::WeightsGate, public RankPasses {
 public:
  // All outlive the object. `master` is on the host; of it this rank's blocks are kept, and nothing
  // else is read. Every weight is trained. `blocks`: the memory of this rank's blocks, the team's
  // or the host's. `staging_floats`: as many are on their way between ranks at one time, at least a
  // block of each.
  ShardedWeights(RankGroup& group,
                 model::ParamStore& master,
                 kernels::PanelDtype dtype,
                 core::TeamRunner& team,
                 core::Memory& blocks,
                 std::int64_t staging_floats = kStaging_floats);

  // Panels that a pass fills part by part, and that say so (PackedWeights::gate).
  std::shared_ptr<const model::PackedWeights> panels(core::Version version);
  // The master values of the part that is open, for the backward pass.
  const model::ParamStore& values() const { return values_; }

  void begin_pass() override;
  core::Result<void> finish_pass(bool backward) override;
  void watch_back(Done done) override { done_ = std::move(done); }
  core::Buffer<float>& own() override { return own_; }

  void open(std::int64_t part, bool backward) override;
  // An error of what watches the way back comes with the next call.
  void close(std::int64_t part, bool backward) noexcept override;

  // Calls `see` for all weights, each once: one part after the other, which lies at `flat +
  // part.begin` in the memory of the team meanwhile. All ranks call it, between passes.
  using See = std::function<void(core::Range part, const float* flat)>;
  core::Result<void> each_part(const See& see);

  // Fills the whole store, until the next pass. All ranks call it.
  core::Result<void> gather_all();
  bool whole() const { return whole_; }
  // Gives the whole store back, of which each rank keeps its blocks. All ranks call it.
  void let_go();

  // Gives all master values to `use` on rank 0, from first to last, a piece at a time. All ranks
  // call it; what is not whole stays so.
  using Use = std::function<void(core::Range place, const float* numbers)>;
  core::Result<void> bring_to_first(const Use& use);

 private:
  const BlockShards& shards() const { return mover_.shards(); }
  void take_own();
  // This rank's blocks of some turns, on the host; valid until the next call.
  const float* own_on_host(core::Range turns);
  core::Result<void> gather(const model::PartRoom::Place& place);
  core::Result<void> gather_part(std::int64_t part);
  std::int64_t place_of(std::int64_t part, bool backward) const;
  core::Result<void> went_back(std::int64_t part) const;

  RankGroup& group_;
  model::ParamStore& master_;
  core::TeamRunner& team_;
  core::SerialTeam alone_;
  core::TeamRunner& host_;  // the team, or where it is a device's, this thread
  ShardMover mover_, host_mover_;
  const model::PartRoom room_;
  model::ParamStore values_;
  std::shared_ptr<model::PackedWeights> panels_;
  core::Buffer<float> own_;
  core::Buffer<float> arriving_;  // a piece of all ranks, on its way from the host
  core::Buffer<float> leaving_;   // a piece of own_, on its way from the device
  std::int64_t next_ = 0;         // the pass's next part: forward ones, then backward ones
  bool has_alone_ = false;        // weights with places of their own are gathered in this pass
  bool whole_ = true;
  Done done_;
  core::Result<void> going_;  // an error of done_
};

}  // namespace troupe::learn
