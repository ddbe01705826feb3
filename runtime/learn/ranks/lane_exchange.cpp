#include "runtime/learn/ranks/lane_exchange.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::learn {
namespace {

std::size_t bytes_of_floats(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(float);
}

}  // namespace

std::vector<LaneExchange::Shipment> LaneExchange::shipments(
    const std::vector<bool>& present) const {
  const auto lanes = static_cast<std::int64_t>(present.size());
  std::vector<Shipment> all;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const LaneSpan own = group_.lanes_of(rank, lanes);
    LaneFold fold(lanes, own.begin);
    for (std::int64_t lane = own.begin; lane < own.end; ++lane)
      fold.take({{lane, lane + 1}, present[static_cast<std::size_t>(lane)]});
    Shipment& shipment = all.emplace_back();
    shipment.subtrees = fold.waiting();
    for (const LaneFold::Subtree& subtree : shipment.subtrees)
      shipment.sums += subtree.present ? 1 : 0;
  }
  return all;
}

// The same on every rank: how many turns of the rank that needs most memory fit into the staging.
std::int64_t LaneExchange::turns_at_once(const std::vector<Shipment>& all) const {
  std::int64_t arrive = 0, leave = 0;
  for (const Shipment& shipment : all) {
    arrive += shipment.sums;
    leave = std::max(leave, shipment.sums * group_.size());
  }
  const std::int64_t floats = (arrive + leave) * BlockShards::kBlock;
  return floats == 0 ? 0 : std::max<std::int64_t>(staging_floats_ / floats, 1);
}

core::Result<void> LaneExchange::add_round(const std::vector<bool>& present,
                                           std::span<model::ParamStore* const> mine,
                                           float* sum) {
  std::vector<const float*> all;
  for (const model::ParamStore* const store : mine)
    all.push_back(store->data());
  return add_round(present, all, sum, {0, shards_.turns()});
}

core::Result<void> LaneExchange::add_round(const std::vector<bool>& present,
                                           std::span<const float* const> mine,
                                           float* sum,
                                           core::Range some) {
  const std::vector<Shipment> all = shipments(present);
  TROUPE_CHECK(std::ssize(mine) == all[static_cast<std::size_t>(group_.rank())].sums,
               "a sum for each subtree that is present");
  const std::int64_t step = turns_at_once(all);
  if (step == 0) return {};
  for (std::int64_t turn = some.begin; turn < some.end; turn += step) {
    const core::Range turns{turn, std::min(turn + step, some.end)};
    const std::int64_t before = shards_.in_buffer(turns).begin - shards_.in_buffer(some).begin;
    std::vector<const float*> windows;
    for (const float* const from : mine)
      windows.push_back(from + before);
    TROUPE_TRY(move(all, windows, turns));
    join(static_cast<std::int64_t>(present.size()), all, turns, sum);
  }
  return {};
}

// Fills in_ with this rank's blocks of these turns: of every sum of every rank, in order.
core::Result<void> LaneExchange::move(const std::vector<Shipment>& all,
                                      std::span<const float* const> mine,
                                      core::Range turns) {
  const auto own = static_cast<std::size_t>(group_.rank());
  const std::int64_t part = shards_.in_shard(group_.rank(), turns).size();
  std::vector<std::int64_t> arrives_at(all.size()), leaves_at(all.size());
  std::int64_t arriving = 0, leaving = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    arrives_at[rank] = arriving;
    arriving += all[rank].sums * part;
    leaves_at[rank] = leaving;
    if (rank != own)
      leaving += std::ssize(mine) * shards_.in_shard(static_cast<int>(rank), turns).size();
  }
  in_.reserve_discard(arriving, team_.memory());
  out_.reserve_discard(leaving, team_.memory());
  team_.run([&](core::Team member) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const std::int64_t size = shards_.in_shard(static_cast<int>(rank), turns).size();
      float* to = rank == own ? in_.data() + arrives_at[own] : out_.data() + leaves_at[rank];
      for (const float* const window : mine) {
        shards_.pack(member, window, static_cast<int>(rank), turns, to);
        to += size;
      }
    }
  });
  std::vector<collective::Source> out(all.size());
  std::vector<collective::Place> in(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (rank == own) continue;
    const std::int64_t size = shards_.in_shard(static_cast<int>(rank), turns).size();
    out[rank] = {out_.data() + leaves_at[rank], bytes_of_floats(std::ssize(mine) * size)};
    in[rank] = {in_.data() + arrives_at[rank], bytes_of_floats(all[rank].sums * part)};
  }
  return group_.gang().all_to_all(out, in, team_.memory());
}

void LaneExchange::join(std::int64_t lanes,
                        const std::vector<Shipment>& all,
                        core::Range turns,
                        float* sum) {
  const core::Range place = shards_.in_shard(group_.rank(), turns);
  if (place.empty()) return;
  LaneFold fold(lanes);
  std::vector<float*> waiting;
  float* next = in_.data();
  for (const Shipment& shipment : all) {
    for (const LaneFold::Subtree& subtree : shipment.subtrees) {
      if (subtree.present) {
        waiting.push_back(next);
        next += place.size();
      }
      for (int joins = fold.take(subtree); joins > 0; --joins) {
        add(waiting.back(), waiting[waiting.size() - 2], place.size());
        waiting.pop_back();
      }
    }
  }
  TROUPE_CHECK(fold.complete() && waiting.size() == 1, "the ranks have all lanes of a round");
  add(waiting.front(), sum + place.begin, place.size());
}

void LaneExchange::add(const float* from, float* to, std::int64_t count) {
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    const core::Range own = member.share(count, 64);
    if (own.empty()) return;
    float* const sum = to + own.begin;
    kernels::ops().add_rows({.columns = own.size(), .a = sum, .b = from + own.begin, .out = sum},
                            {0, 1});
  });
}

}  // namespace troupe::learn
