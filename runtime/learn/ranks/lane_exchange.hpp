// Carries the gradients of a round from the ranks that computed them to the ranks that own their
// blocks. Each rank ships the sums of the largest subtrees that it has completed; the owner of a
// block takes those of all ranks from left to right, does the joins that are left (lane_tree.hpp)
// and adds the round's sum to its shard of the step's gradient. So the additions, and their order,
// are those of one process (lane_sum.hpp). Every rank calls it with the same lanes present. Owned
// by a rank's gradient, used on its thread; numeric work on the team. Memory: `staging_floats` in
// the team's memory, or one block of each subtree and rank if that is more.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/lanes/lane_tree.hpp"
#include "runtime/learn/ranks/block_shards.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

inline constexpr std::int64_t kStaging_floats = std::int64_t{4} << 20;

class LaneExchange {
 public:
  // All outlive the object, except `shards`.
  LaneExchange(RankGroup& group,
               const BlockShards& shards,
               core::TeamRunner& team,
               std::int64_t staging_floats = kStaging_floats)
      : group_(group), shards_(shards), team_(team), staging_floats_(staging_floats) {}

  // Adds the round's sum to `sum`, this rank's shard. `present`: for each of all lanes, whether it
  // has a gradient. `mine`: the sums of this rank's largest complete subtrees, as LaneStack has
  // them.
  core::Result<void> add_round(const std::vector<bool>& present,
                               std::span<model::ParamStore* const> mine,
                               float* sum);
  // Adds a round for some turns alone; each of `mine` has the elements in_buffer(turns).
  core::Result<void> add_round(const std::vector<bool>& present,
                               std::span<const float* const> mine,
                               float* sum,
                               core::Range turns);

 private:
  // The subtrees of each rank, and how many of them have a sum.
  struct Shipment {
    std::vector<LaneFold::Subtree> subtrees;
    std::int64_t sums = 0;
  };

  std::vector<Shipment> shipments(const std::vector<bool>& present) const;
  std::int64_t turns_at_once(const std::vector<Shipment>& all) const;
  core::Result<void> move(const std::vector<Shipment>& all,
                          std::span<const float* const> mine,
                          core::Range turns);
  void join(std::int64_t lanes, const std::vector<Shipment>& all, core::Range turns, float* sum);
  void add(const float* from, float* to, std::int64_t count);

  RankGroup& group_;
  const BlockShards shards_;
  core::TeamRunner& team_;
  const std::int64_t staging_floats_;
  core::Buffer<float> out_, in_;
};

}  // namespace troupe::learn
