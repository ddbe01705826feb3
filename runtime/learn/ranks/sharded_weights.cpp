#include "runtime/learn/ranks/sharded_weights.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/pages.hpp"
#include "runtime/learn/ranks/lane_exchange.hpp"

#include <algorithm>

namespace troupe::learn {
namespace {

constexpr std::int64_t kTurnBlock = BlockShards::kBlock;

}  // namespace

ShardedWeights::ShardedWeights(RankGroup& group,
                               model::ParamStore& master,
                               kernels::PanelDtype dtype,
                               core::TeamRunner& team)
    : group_(group),
      master_(master),
      team_(team),
      mover_(group, BlockShards(master.size(), group.size()), team, kStaging_floats),
      parts_(model::ranges_of_parts(master.spec(), master.layout())),
      panels_(std::make_shared<model::PackedWeights>(master.spec(), dtype, team.memory())) {
  TROUPE_CHECK(team.memory().on_host(), "pages of the host's memory are given back");
  core::use_small_pages(master.data(), static_cast<std::size_t>(master.size()) * sizeof(float));
  panels_->use_small_pages();
  panels_->set_gate(this);
}

std::shared_ptr<const model::PackedWeights> ShardedWeights::panels(core::Version version) {
  panels_->set_version(version);
  return panels_;
}

void ShardedWeights::begin_pass() {
  next_ = 0;
  going_ = {};
  if (whole_) let_go();
}

void ShardedWeights::let_go() {
  forget({0, mover_.shards().turns()});
  whole_ = false;
}

void ShardedWeights::read_own(core::Range turns, float* to) {
  const float* const window = master_.data() + shards().in_buffer(turns).begin;
  team_.run([&](core::Team member) { shards().pack(member, window, group_.rank(), turns, to); });
}

void ShardedWeights::write_own(core::Range turns, const float* from) {
  float* const window = master_.data() + shards().in_buffer(turns).begin;
  team_.run(
      [&](core::Team member) { shards().unpack(member, from, group_.rank(), turns, window); });
}

core::Result<void> ShardedWeights::bring_to_first(const Use& use) {
  if (whole_) {
    if (group_.rank() == 0) use({0, master_.size()}, master_.data());
    return {};
  }
  core::Buffer<float> window;
  return mover_.each([&](core::Range turns) -> core::Result<void> {
    mine_.reserve_discard(shards().in_shard(group_.rank(), turns).size(), team_.memory());
    read_own(turns, mine_.data());
    if (group_.rank() != 0) return mover_.collect(turns, mine_.data(), nullptr);
    const core::Range place = shards().in_buffer(turns);
    window.reserve_discard(place.size(), team_.memory());
    TROUPE_TRY(mover_.collect(turns, mine_.data(), window.data()));
    use(place, window.data());
    return {};
  });
}

// The place of a part in a pass that goes forward through all parts and back through all but the
// embedding, whose gradient reads no weights.
std::int64_t ShardedWeights::place_of(std::int64_t part, bool backward) const {
  const std::int64_t count = std::ssize(parts_);
  return backward ? 2 * count - 1 - part : part;
}

core::Result<void> ShardedWeights::finish_pass(bool backward) {
  const std::int64_t count = std::ssize(parts_);
  const std::int64_t end = backward ? 2 * count - 1 : count;
  TROUPE_TRY(going_);
  for (; next_ < end; ++next_) {
    const std::int64_t part = next_ < count ? next_ : 2 * count - 1 - next_;
    TROUPE_TRY(gather_part(part));
    for (const core::Range range : parts_[static_cast<std::size_t>(part)])
      forget(turns_of(range));
    if (next_ >= count) TROUPE_TRY(went_back(part));
  }
  return {};
}

// Layers lie in ascending order behind the embedding and before the final norm and the head, so
// what is complete on the way back is all from some element on. A tied embedding, which is in the
// last part too, is complete at the very end.
core::Result<void> ShardedWeights::went_back(std::int64_t part) const {
  if (!done_) return {};
  const auto& ranges = parts_[static_cast<std::size_t>(part)];
  return done_(part + 1 == std::ssize(parts_) ? ranges.back().begin : ranges.front().begin);
}

void ShardedWeights::open(std::int64_t part, bool backward) {
  TROUPE_CHECK(next_ == place_of(part, backward) && !whole_, "all ranks make the same passes");
  if (!going_) throw model::GateFailure(going_.error());
  if (auto gathered = gather_part(part); !gathered) throw model::GateFailure(gathered.error());
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    for (const core::Range range : parts_[static_cast<std::size_t>(part)])
      panels_->fill_range(member, master_.data(), range);
  });
}

void ShardedWeights::close(std::int64_t part, bool backward) noexcept {
  for (const core::Range range : parts_[static_cast<std::size_t>(part)]) {
    forget(turns_of(range));
    panels_->forget_range(range);
  }
  ++next_;
  if (backward && going_) going_ = went_back(part);
}

core::Result<void> ShardedWeights::gather_part(std::int64_t part) {
  for (const core::Range range : parts_[static_cast<std::size_t>(part)])
    TROUPE_TRY(gather(turns_of(range)));
  return {};
}

core::Result<void> ShardedWeights::each_part(const See& see) {
  if (whole_) {
    see({0, master_.size()}, master_.data());
    return {};
  }
  const auto is_in_last_part = [this](core::Range range) {  // too, as a tied embedding is
    const auto& last = parts_.back();
    return std::any_of(last.begin(), last.end(), [&](core::Range one) {
      return one.begin <= range.begin && range.end <= one.end;
    });
  };
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    for (const core::Range range : parts_[part]) {
      if (part + 1 < parts_.size() && is_in_last_part(range)) continue;
      TROUPE_TRY(gather(turns_of(range)));
      see(range, master_.data());
      forget(turns_of(range));
    }
  }
  return {};
}

core::Result<void> ShardedWeights::gather_all() {
  if (whole_) return {};
  TROUPE_TRY(gather({0, mover_.shards().turns()}));
  whole_ = true;
  return {};
}

// The turns that have all of these elements.
core::Range ShardedWeights::turns_of(core::Range elements) const {
  const std::int64_t turn = mover_.shards().ranks() * kTurnBlock;
  return {elements.begin / turn, (elements.end + turn - 1) / turn};
}

core::Result<void> ShardedWeights::gather(core::Range turns) {
  const BlockShards& shards = mover_.shards();
  const std::int64_t step = mover_.turns_at_once();
  for (std::int64_t turn = turns.begin; turn < turns.end; turn += step) {
    const core::Range piece{turn, std::min(turn + step, turns.end)};
    float* const window = master_.data() + shards.in_buffer(piece).begin;
    mine_.reserve_discard(shards.in_shard(group_.rank(), piece).size(), team_.memory());
    team_.run([&](core::Team member) {
      shards.pack(member, window, group_.rank(), piece, mine_.data());
    });
    TROUPE_TRY(mover_.gather(piece, mine_.data(), window));
  }
  return {};
}

// Gives the other ranks' blocks of these turns back: the runs between this rank's own blocks.
void ShardedWeights::forget(core::Range turns) noexcept {
  const std::int64_t ranks = mover_.shards().ranks(), last = mover_.shards().blocks();
  std::int64_t begin = turns.begin * ranks;
  const auto forget_blocks = [&](std::int64_t from, std::int64_t to) {
    to = std::min(to, last);
    if (from >= to) return;
    core::forget_pages(
        master_.data() + from * kTurnBlock,
        static_cast<std::size_t>(std::min(to * kTurnBlock, master_.size()) - from * kTurnBlock) *
            sizeof(float));
  };
  for (std::int64_t turn = turns.begin; turn < turns.end; ++turn) {
    const std::int64_t own = turn * ranks + group_.rank();
    forget_blocks(begin, own);
    begin = own + 1;
  }
  forget_blocks(begin, turns.end * ranks);
}

}  // namespace troupe::learn
