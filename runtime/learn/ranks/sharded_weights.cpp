#include "runtime/learn/ranks/sharded_weights.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/pages.hpp"
#include "runtime/core/thrown.hpp"

#include <algorithm>
#include <exception>
#include <vector>

namespace troupe::learn {

ShardedWeights::ShardedWeights(RankGroup& group,
                               model::ParamStore& master,
                               kernels::PanelDtype dtype,
                               core::TeamRunner& team,
                               core::Memory& blocks,
                               std::int64_t staging_floats)
    : group_(group),
      master_(master),
      team_(team),
      host_(team.memory().on_host() ? team : alone_),
      mover_(group, BlockShards(master.size(), group.size()), team, staging_floats),
      host_mover_(group, mover_.shards(), host_, staging_floats),
      room_(master.spec(), master.layout(), group.size() * BlockShards::kBlock),
      values_(master.spec(), room_.layout(), team.memory()),
      panels_(std::make_shared<model::PackedWeights>(
          master.spec(), dtype, team.memory(), model::PanelRoom::kPart)),
      own_(mover_.shards().elements(group.rank()), blocks) {
  TROUPE_CHECK(master.memory().on_host(), "the whole weights are on the host");
  panels_->set_gate(this);
  take_own();
  let_go();
}

std::shared_ptr<const model::PackedWeights> ShardedWeights::panels(core::Version version) {
  panels_->set_version(version);
  return panels_;
}

void ShardedWeights::take_own() {
  core::Buffer<float> visiting;
  float* blocks = own_.data();
  if (!own_.memory().on_host()) {
    visiting = core::Buffer<float>(own_.size());
    blocks = visiting.data();
  }
  host_.run([&](core::Team member) {
    shards().pack(member, master_.data(), group_.rank(), {0, shards().turns()}, blocks);
  });
  if (visiting.size() > 0) own_.upload(visiting.span());
}

void ShardedWeights::let_go() {
  if (!whole_) return;
  core::forget_pages(master_.data(), static_cast<std::size_t>(master_.size()) * sizeof(float));
  whole_ = false;
}

void ShardedWeights::begin_pass() {
  next_ = 0;
  has_alone_ = false;
  going_ = {};
  let_go();
}

const float* ShardedWeights::own_on_host(core::Range turns) {
  const core::Range place = shards().in_shard(group_.rank(), turns);
  const float* const own = own_.data() + place.begin;
  if (own_.memory().on_host()) return own;
  leaving_.reserve_discard(place.size());
  own_.memory().download(leaving_.data(), own,
                         static_cast<std::size_t>(place.size()) * sizeof(float));
  return leaving_.data();
}

core::Result<void> ShardedWeights::bring_to_first(const Use& use) {
  if (whole_) {
    if (group_.rank() == 0) use({0, master_.size()}, master_.data());
    return {};
  }
  std::vector<float> window;
  return host_mover_.each([&](core::Range turns) -> core::Result<void> {
    const float* const mine = own_on_host(turns);
    if (group_.rank() != 0) return host_mover_.collect(turns, mine, nullptr);
    const core::Range place = shards().in_buffer(turns);
    window.resize(static_cast<std::size_t>(place.size()));
    TROUPE_TRY(host_mover_.collect(turns, mine, window.data()));
    use(place, window.data());
    return {};
  });
}

// The place of a part in a pass that goes forward through all parts and back through all but the
// embedding, whose gradient reads no weights.
std::int64_t ShardedWeights::place_of(std::int64_t part, bool backward) const {
  return backward ? 2 * room_.parts() - 1 - part : part;
}

core::Result<void> ShardedWeights::finish_pass(bool backward) {
  const std::int64_t count = room_.parts();
  const std::int64_t end = backward ? 2 * count - 1 : count;
  TROUPE_TRY(going_);
  for (; next_ < end; ++next_) {
    const std::int64_t part = next_ < count ? next_ : 2 * count - 1 - next_;
    TROUPE_TRY(gather_part(part));
    if (next_ >= count) TROUPE_TRY(went_back(part));
  }
  return {};
}

core::Result<void> ShardedWeights::went_back(std::int64_t part) const {
  return done_ ? done_(part) : core::Result<void>();
}

void ShardedWeights::open(std::int64_t part, bool backward) {
  TROUPE_CHECK(next_ == place_of(part, backward) && !whole_, "all ranks make the same passes");
  if (!going_) throw model::GateFailure(going_.error());
  if (auto gathered = gather_part(part); !gathered) throw model::GateFailure(gathered.error());
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    for (const model::PartRoom::Place& place : room_.places(part))
      panels_->fill_range(member, values_.data() + place.of(place.tensors.begin), place.tensors);
  });
}

void ShardedWeights::close(std::int64_t part, bool backward) noexcept {
  ++next_;
  if (!backward || !going_) return;
  try {
    going_ = went_back(part);
  } catch (const std::exception& thrown) {  // memory of a device
    going_ = core::fail(core::error_of(thrown));
  }
}

core::Result<void> ShardedWeights::gather_part(std::int64_t part) {
  for (const model::PartRoom::Place& place : room_.places(part)) {
    if (place.alone && has_alone_) continue;
    TROUPE_TRY(gather(place));
    has_alone_ = has_alone_ || place.alone;
  }
  return {};
}

core::Result<void> ShardedWeights::each_part(const See& see) {
  if (whole_ && team_.memory().on_host()) {
    see({0, master_.size()}, master_.data());
    return {};
  }
  for (std::int64_t part = 0; part < room_.parts(); ++part) {
    for (const model::PartRoom::Place& place : room_.places(part)) {
      if (place.alone && part > 0) continue;  // an embedding that is the head, too
      TROUPE_TRY(gather(place));
      see(place.tensors, values_.data() + place.of(0));
    }
  }
  return {};
}

core::Result<void> ShardedWeights::gather_all() {
  if (whole_) return {};
  TROUPE_TRY(host_mover_.each([&](core::Range turns) {
    return host_mover_.gather(turns, own_on_host(turns),
                              master_.data() + shards().in_buffer(turns).begin);
  }));
  whole_ = true;
  return {};
}

core::Result<void> ShardedWeights::gather(const model::PartRoom::Place& place) {
  const BlockShards& shards = mover_.shards();
  const std::int64_t turn = shards.ranks() * BlockShards::kBlock;
  const core::Range turns{place.steps.begin / turn, (place.steps.end + turn - 1) / turn};
  const std::int64_t step = mover_.turns_at_once();
  for (std::int64_t first = turns.begin; first < turns.end; first += step) {
    const core::Range piece{first, std::min(first + step, turns.end)};
    const core::Range window = shards.in_buffer(piece);
    const float* const from = own_.data() + shards.in_shard(group_.rank(), piece).begin;
    float* const to = values_.data() + place.of(window.begin);
    if (&own_.memory() == &team_.memory()) {
      TROUPE_TRY(mover_.gather(piece, from, to));
      continue;
    }
    arriving_.reserve_discard(window.size());
    TROUPE_TRY(host_mover_.gather(piece, from, arriving_.data()));
    team_.memory().upload(to, arriving_.data(),
                          static_cast<std::size_t>(window.size()) * sizeof(float));
  }
  return {};
}

}  // namespace troupe::learn
