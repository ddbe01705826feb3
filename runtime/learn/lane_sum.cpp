#include "runtime/learn/lane_sum.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <utility>

namespace troupe::learn {
namespace {

// Elements: members' shares begin at multiples of it, so no two write to one cache line.
constexpr std::int64_t kShare = 64;

}  // namespace

LaneSum::LaneSum(const model::ModelSpec& spec,
                 std::shared_ptr<const model::ParamLayout> trained,
                 std::int64_t lanes,
                 core::TeamRunner& team)
    : lanes_(lanes), team_(team), sum_(spec, std::move(trained), team.memory()), fold_(lanes) {
  TROUPE_CHECK(lanes >= 1, "there is a lane");
  if (lanes == 1) return;
  lane_.emplace(sum_.same_layout());
  // As many subtrees can wait as a lane's number has ones in binary.
  for (std::int64_t left = lanes; left > 1; left /= 2)
    spare_.push_back(sum_.same_layout());
}

void LaneSum::begin_step() {
  zero(sum_);
  began_ = false;
  open_ = Lane::kClosed;
  fold_ = LaneFold(lanes_);
  for (model::ParamStore& store : kept_)
    spare_.push_back(std::move(store));
  kept_.clear();
}

void LaneSum::begin_micro_batch(bool learns) {
  began_ = true;
  if (!lane_) return;
  close();
  open_ = learns ? Lane::kPresent : Lane::kAbsent;
  if (learns) zero(*lane_);
}

void LaneSum::end_step() {
  if (!lane_) return;
  TROUPE_CHECK(began_, "with lanes, each micro-batch is begun");
  close();
  while (fold_.next() > 0)
    take_lane(false);
}

void LaneSum::close() {
  if (open_ != Lane::kClosed) take_lane(open_ == Lane::kPresent);
  open_ = Lane::kClosed;
}

// The lane's own sum is in `lane_`. It is kept only if it has to wait.
void LaneSum::take_lane(bool present) {
  int joins = fold_.take({{fold_.next(), fold_.next() + 1}, present});
  if (present && joins > 0) {
    add(*lane_, kept_.back());
    --joins;
  } else if (present) {
    TROUPE_CHECK(!spare_.empty(), "at most floor(log2 L) subtrees wait");
    std::swap(*lane_, spare_.back());
    kept_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  for (; joins > 0; --joins)
    join_last();
  if (!fold_.complete()) return;
  if (!kept_.empty()) {
    add(kept_.back(), sum_);
    spare_.push_back(std::move(kept_.back()));
    kept_.pop_back();
  }
  fold_ = LaneFold(lanes_);
}

void LaneSum::join_last() {
  add(kept_.back(), kept_[kept_.size() - 2]);
  spare_.push_back(std::move(kept_.back()));
  kept_.pop_back();
}

void LaneSum::zero(model::ParamStore& store) {
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    kernels::ops().zero(store.data(), member.share(store.size(), kShare));
  });
}

void LaneSum::add(const model::ParamStore& from, model::ParamStore& to) {
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    const core::Range own = member.share(to.size(), kShare);
    if (own.empty()) return;
    float* const sum = to.data() + own.begin;
    kernels::ops().add_rows(
        {.columns = own.size(), .a = sum, .b = from.data() + own.begin, .out = sum}, {0, 1});
  });
}

}  // namespace troupe::learn
