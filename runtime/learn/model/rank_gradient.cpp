#include "runtime/learn/model/rank_gradient.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace troupe::learn {
namespace {

std::optional<LaneRoom> room_on_the_way(const RankPasses* passes,
                                        std::int64_t lanes,
                                        const model::ModelSpec& spec,
                                        const model::ParamLayout& layout,
                                        const BlockShards& shards,
                                        core::TeamRunner& team) {
  if (passes == nullptr || lanes != shards.ranks()) return std::nullopt;
  return LaneRoom(spec, layout, shards, team);
}

}  // namespace

RankGradient::RankGradient(RankGroup& group,
                           const model::ModelSpec& spec,
                           const std::shared_ptr<const model::ParamLayout>& trained,
                           std::int64_t lanes,
                           core::TeamRunner& team,
                           RankPasses* passes)
    : group_(group),
      shards_(trained->total, group.size()),
      lanes_(lanes),
      team_(team),
      passes_(passes),
      trained_(trained),
      room_(room_on_the_way(passes, lanes, spec, *trained, shards_, team)),
      stack_(spec,
             room_ ? room_->layout() : trained,
             lanes,
             group.lanes_of(group.rank(), lanes),
             team),
      exchange_(group, shards_, team),
      sum_(shards_.elements(group.rank()), team.memory()) {
  if (room_) passes_->watch_back([this](std::int64_t part) { return ship(part); });
}

void RankGradient::begin_step() {
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    kernels::ops().zero(sum_.data(), member.share(sum_.size(), 64));
  });
}

core::Result<std::size_t> RankGradient::run(const StepParts& parts) {
  const std::size_t count = parts.parts.size(), lanes = static_cast<std::size_t>(lanes_);
  for (std::size_t first = 0; first < count; first += lanes) {
    const std::size_t last = std::min(first + lanes, count);
    present_.assign(lanes, false);
    for (std::size_t part = first; part < last; ++part)
      present_[part - first] = parts.parts[part].learns;
    if (room_) room_->begin();
    if (auto done = run_own(parts, first); !done) return group_.leave(done.error());
    TROUPE_TRY(share_figures(parts, first, last));
    for (std::size_t part = first; part < last; ++part)
      if (!parts.finite(part)) return part + 1;
    if (!room_) TROUPE_TRY(exchange_.add_round(present_, stack_.sums(), sum_.data()));
  }
  return count;
}

// Runs the micro-batches of this rank's lanes. After one that is not finite the step is over, so
// the rest is left out. Over divided weights all ranks make as many passes as the one with most
// micro-batches, and go back when one of them does.
core::Result<void> RankGradient::run_own(const StepParts& parts, std::size_t first) {
  const LaneSpan own = group_.lanes_of(group_.rank(), lanes_);
  bool finite = true;
  stack_.begin_round();
  for (std::int64_t turn = 0; turn < (lanes_ + group_.size() - 1) / group_.size(); ++turn) {
    const auto run = [&]() -> core::Result<void> {
      const std::size_t part = first + static_cast<std::size_t>(own.begin + turn);
      if (!finite || own.begin + turn >= own.end || part >= parts.parts.size()) return {};
      // What was shipped on the way has left zeros.
      if (!room_) stack_.begin_lane(parts.parts[part].learns);
      TROUPE_TRY(parts.run(part));
      finite = parts.finite(part);
      return {};
    };
    bool any = false, learns = false;
    for (int rank = 0; rank < group_.size(); ++rank) {
      const LaneSpan lanes = group_.lanes_of(rank, lanes_);
      const std::size_t part = first + static_cast<std::size_t>(lanes.begin + turn);
      if (lanes.begin + turn >= lanes.end || part >= parts.parts.size()) continue;
      any = true;
      learns = learns || parts.parts[part].learns;
    }
    if (any) TROUPE_TRY(in_pass(run, passes_, learns));
  }
  stack_.end_round();
  return room_ ? ship(0) : core::Result<void>();
}

core::Result<void> RankGradient::ship(std::int64_t part) {
  const bool has_one = present_[static_cast<std::size_t>(group_.rank())];
  return room_->finish(part, working().data(), [&](core::Range turns, const float* numbers) {
    return exchange_.add_round(present_, {&numbers, has_one ? std::size_t{1} : std::size_t{0}},
                               sum_.data(), turns);
  });
}

core::Result<void> RankGradient::share_figures(const StepParts& parts,
                                               std::size_t first,
                                               std::size_t last) {
  const std::size_t size = parts.figure_bytes;
  std::vector<std::size_t> counts;
  std::size_t begin = 0;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const LaneSpan own = group_.lanes_of(rank, lanes_);
    const std::size_t from = std::min(first + static_cast<std::size_t>(own.begin), last);
    const std::size_t to = std::min(first + static_cast<std::size_t>(own.end), last);
    counts.push_back((to - from) * size);
    if (rank == group_.rank()) begin = from;
  }
  const std::size_t mine = counts[static_cast<std::size_t>(group_.rank())];
  const std::span<const std::byte> own(parts.figures + begin * size, mine);
  TROUPE_TRY_ASSIGN(all, group_.gather<std::byte>(own, counts));
  std::copy(all.begin(), all.end(), parts.figures + first * size);
  return {};
}

core::Result<double> RankGradient::norm() {
  const int own = group_.rank();
  core::Buffer<double> sums(shards_.blocks(own), team_.memory());
  team_.run([&](core::Team member) {
    const core::Range share = member.share(shards_.blocks(own));
    if (!share.empty())
      kernels::ops().sum_squares({.x = sum_.data(), .count = sum_.size(), .sums = sums.data()},
                                 share);
  });
  std::vector<double> mine(static_cast<std::size_t>(shards_.blocks(own)));
  sums.download(mine);
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < group_.size(); ++rank)
    counts.push_back(static_cast<std::size_t>(shards_.blocks(rank)));
  TROUPE_TRY_ASSIGN(all, group_.gather<double>(mine, counts));
  std::vector<double> ascending(all.size());
  std::size_t next = 0;
  for (int rank = 0; rank < group_.size(); ++rank) {
    for (auto block = static_cast<std::size_t>(rank); block < all.size();
         block += static_cast<std::size_t>(group_.size()))
      ascending[block] = all[next++];
  }
  return std::sqrt(std::accumulate(ascending.begin(), ascending.end(), 0.0));
}

core::Result<std::string> RankGradient::first_nonfinite() {
  std::vector<float> shard(static_cast<std::size_t>(sum_.size()));
  sum_.download(shard);
  const auto found =
      std::find_if(shard.begin(), shard.end(), [](float number) { return !std::isfinite(number); });
  std::int64_t place = std::numeric_limits<std::int64_t>::max();
  if (found != shard.end()) place = shards_.place(group_.rank(), found - shard.begin());
  const std::vector<std::size_t> counts(static_cast<std::size_t>(group_.size()), 1);
  TROUPE_TRY_ASSIGN(places, group_.gather<std::int64_t>({&place, 1}, counts));
  place = *std::min_element(places.begin(), places.end());
  for (const model::ParamView& view : trained_->views)
    if (view.offset <= place && place < view.offset + view.count) return view.name;
  return std::string();
}

}  // namespace troupe::learn
