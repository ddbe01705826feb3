#include "runtime/learn/ranks/shard_mover.hpp"

#include <algorithm>
#include <vector>

namespace troupe::learn {
namespace {

std::size_t float_bytes(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

}  // namespace

ShardMover::ShardMover(RankGroup& group,
                       const BlockShards& shards,
                       core::TeamRunner& team,
                       std::int64_t staging_floats)
    : group_(group),
      shards_(shards),
      team_(team),
      turns_at_once_(
          std::max<std::int64_t>(staging_floats / (BlockShards::kBlock * shards.ranks()), 1)) {}

core::Result<void> ShardMover::each(
    const std::function<core::Result<void>(core::Range turns)>& piece) const {
  return shards_.each(turns_at_once_, piece);
}

core::Result<void> ShardMover::gather(core::Range turns, const float* mine, float* window) {
  const int own = group_.rank();
  const std::int64_t most = turns.size() * BlockShards::kBlock;
  staging_.reserve_discard(most * shards_.ranks(), team_.memory());
  std::vector<collective::Place> into;
  for (int rank = 0; rank < shards_.ranks(); ++rank)
    into.push_back(
        {staging_.data() + rank * most, float_bytes(shards_.in_shard(rank, turns).size())});
  collective::Place& here = into[static_cast<std::size_t>(own)];
  here.at = const_cast<float*>(mine);  // it is there already, and only read
  TROUPE_TRY(group_.gang().all_gather({mine, here.bytes}, into, team_.memory()));
  team_.run([&](core::Team member) {
    for (int rank = 0; rank < shards_.ranks(); ++rank) {
      const auto* const part = static_cast<const float*>(into[static_cast<std::size_t>(rank)].at);
      shards_.unpack(member, part, rank, turns, window);
    }
  });
  return {};
}

core::Result<void> ShardMover::gather(const float* shard, float* buffer) {
  return each([&](core::Range turns) {
    return gather(turns, shard + shards_.in_shard(group_.rank(), turns).begin,
                  buffer + shards_.in_buffer(turns).begin);
  });
}

core::Result<void> ShardMover::collect(core::Range turns, const float* mine, float* window) {
  const auto bytes_of = [&](int rank) { return float_bytes(shards_.in_shard(rank, turns).size()); };
  if (group_.rank() != 0)
    return group_.gang().send(0, {mine, bytes_of(group_.rank())}, team_.memory());
  staging_.reserve_discard(turns.size() * BlockShards::kBlock, team_.memory());
  for (int rank = 0; rank < shards_.ranks(); ++rank) {
    const float* part = mine;
    if (rank != 0) {
      TROUPE_TRY(group_.gang().recv(rank, {staging_.data(), bytes_of(rank)}, team_.memory()));
      part = staging_.data();
    }
    team_.run([&](core::Team member) { shards_.unpack(member, part, rank, turns, window); });
  }
  return {};
}

}  // namespace troupe::learn
