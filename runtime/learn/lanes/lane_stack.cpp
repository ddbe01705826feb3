#include "runtime/learn/lanes/lane_stack.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <utility>

namespace troupe::learn {
namespace {

// Elements: members' shares begin at multiples of it, so no two write to one cache line.
constexpr std::int64_t kShare = 64;

// How many subtrees wait while a further lane of `own` is computed, at most.
std::size_t most_waiting(std::int64_t lanes, LaneSpan own) {
  LaneFold fold(lanes, own.begin);
  std::size_t most = 0;
  for (std::int64_t lane = own.begin; lane + 1 < own.end; ++lane) {
    fold.take({{lane, lane + 1}, true});
    most = std::max(most, fold.waiting().size());
  }
  return most;
}

}  // namespace

void zero_store(core::TeamRunner& team, model::ParamStore& store) {
  team.run([&](core::Team member) {
    kernels::flush_denormals();
    kernels::ops().zero(store.data(), member.share(store.size(), kShare));
  });
}

void add_store(core::TeamRunner& team, const model::ParamStore& from, model::ParamStore& to) {
  team.run([&](core::Team member) {
    kernels::flush_denormals();
    const core::Range own = member.share(to.size(), kShare);
    if (own.empty()) return;
    float* const sum = to.data() + own.begin;
    kernels::ops().add_rows(
        {.columns = own.size(), .a = sum, .b = from.data() + own.begin, .out = sum}, {0, 1});
  });
}

LaneStack::LaneStack(const model::ModelSpec& spec,
                     std::shared_ptr<const model::ParamLayout> trained,
                     std::int64_t lanes,
                     LaneSpan own,
                     core::TeamRunner& team)
    : lanes_(lanes),
      own_(own),
      team_(team),
      lane_(spec, std::move(trained), team.memory()),
      fold_(lanes, own.begin),
      next_(own.begin) {
  TROUPE_CHECK(0 <= own.begin && own.begin < own.end && own.end <= lanes, "some lanes of all");
  for (std::size_t i = most_waiting(lanes, own); i > 0; --i)
    free_.push_back(&pool_.emplace_back(lane_.same_layout()));
}

void LaneStack::begin_round() {
  open_ = Lane::kClosed;
  next_ = own_.begin;
  fold_ = LaneFold(lanes_, own_.begin);
  for (model::ParamStore* const store : kept_)
    if (store != &lane_) free_.push_back(store);
  kept_.clear();
}

void LaneStack::begin_lane(bool present) {
  TROUPE_CHECK(has_lane_left(), "a round has a micro-batch for each lane at most");
  close();
  ++next_;
  open_ = present ? Lane::kPresent : Lane::kAbsent;
  if (present) zero_store(team_, lane_);
}

void LaneStack::end_round() {
  close();
  for (; next_ < own_.end; ++next_)
    take(false);
}

void LaneStack::close() {
  if (open_ != Lane::kClosed) take(open_ == Lane::kPresent);
  open_ = Lane::kClosed;
}

// The lane's own sum is in `lane_`. It is kept only if it has to wait.
void LaneStack::take(bool present) {
  const std::int64_t lane = fold_.next();
  int joins = fold_.take({{lane, lane + 1}, present});
  if (present && joins > 0) {
    add_store(team_, lane_, *kept_.back());
    --joins;
  } else if (present && lane + 1 == own_.end) {
    kept_.push_back(&lane_);  // no other lane will need it in this round
  } else if (present) {
    TROUPE_CHECK(!free_.empty(), "no more subtrees wait than were counted");
    std::swap(lane_, *free_.back());
    kept_.push_back(free_.back());
    free_.pop_back();
  }
  for (; joins > 0; --joins) {
    add_store(team_, *kept_.back(), *kept_[kept_.size() - 2]);
    free_.push_back(kept_.back());
    kept_.pop_back();
  }
}

}  // namespace troupe::learn
