#include "runtime/learn/ranks/block_shards.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::learn {

BlockShards::BlockShards(std::int64_t elements, int ranks) : elements_(elements), ranks_(ranks) {
  TROUPE_CHECK(elements >= 0 && ranks >= 1, "a buffer and its ranks");
}

std::int64_t BlockShards::blocks(int rank) const {
  return (blocks() - rank + ranks_ - 1) / ranks_;
}

std::int64_t BlockShards::elements(int rank) const {
  const std::int64_t own = blocks(rank);
  const bool has_last = own > 0 && (blocks() - 1) % ranks_ == rank;
  return own * kBlock - (has_last ? blocks() * kBlock - elements_ : 0);
}

core::Range BlockShards::in_shard(int rank, core::Range turns) const {
  const std::int64_t all = elements(rank);
  return {std::min(turns.begin * kBlock, all), std::min(turns.end * kBlock, all)};
}

core::Range BlockShards::in_buffer(core::Range turns) const {
  const std::int64_t turn = ranks_ * kBlock;
  return {std::min(turns.begin * turn, elements_), std::min(turns.end * turn, elements_)};
}

core::Result<void> BlockShards::each(
    std::int64_t at_once, const std::function<core::Result<void>(core::Range turns)>& piece) const {
  for (std::int64_t turn = 0; turn < turns(); turn += at_once)
    TROUPE_TRY(piece({turn, std::min(turn + at_once, turns())}));
  return {};
}

std::vector<core::Range> BlockShards::of_rank(int rank, int ranks, core::Range elements) {
  std::vector<core::Range> ranges;
  const std::int64_t first = elements.begin / kBlock;
  for (std::int64_t block = first + (rank - first % ranks + ranks) % ranks;
       block * kBlock < elements.end; block += ranks) {
    ranges.push_back(
        {std::max(block * kBlock, elements.begin), std::min((block + 1) * kBlock, elements.end)});
  }
  return ranges;
}

void BlockShards::pack(
    core::Team team, const float* window, int rank, core::Range turns, float* part) const {
  move(team, rank, turns, window, part, true);
}

void BlockShards::unpack(
    core::Team team, const float* part, int rank, core::Range turns, float* window) const {
  move(team, rank, turns, part, window, false);
}

void BlockShards::move(core::Team team,
                       int rank,
                       core::Range turns,
                       const float* from,
                       float* to,
                       bool into_shard) const {
  const core::Range part = in_shard(rank, turns);
  if (part.empty()) return;
  const std::int64_t whole = part.size() / kBlock, rest = part.size() % kBlock;
  const std::int64_t at = rank * kBlock, stride = ranks_ * kBlock;
  kernels::CopyRows rows{.columns = kBlock, .from = from, .ldf = kBlock, .to = to, .ldt = kBlock};
  if (into_shard) {
    rows.from = from + at;
    rows.ldf = stride;
  } else {
    rows.to = to + at;
    rows.ldt = stride;
  }
  const core::Range own = team.share(whole);
  if (!own.empty()) kernels::ops().copy_rows(rows, own);
  if (rest == 0 || team.rank != team.size - 1) return;
  rows.columns = rest;
  kernels::ops().copy_rows(rows, {whole, whole + 1});
}

}  // namespace troupe::learn
