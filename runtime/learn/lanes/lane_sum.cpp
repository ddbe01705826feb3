#include "runtime/learn/lanes/lane_sum.hpp"

#include "runtime/core/check.hpp"

#include <utility>

namespace troupe::learn {

LaneSum::LaneSum(const model::ModelSpec& spec,
                 std::shared_ptr<const model::ParamLayout> trained,
                 std::int64_t lanes,
                 core::TeamRunner& team)
    : lanes_(lanes), team_(team), sum_(spec, std::move(trained), team.memory()) {
  TROUPE_CHECK(lanes >= 1, "there is a lane");
  if (lanes > 1) round_.emplace(spec, sum_.shared_layout(), lanes, LaneSpan{0, lanes}, team);
}

void LaneSum::begin_step() {
  zero_store(team_, sum_);
  began_ = false;
  if (round_) round_->begin_round();
}

void LaneSum::begin_micro_batch(bool learns) {
  began_ = true;
  if (!round_) return;
  if (!round_->has_lane_left()) end_round();
  round_->begin_lane(learns);
}

void LaneSum::end_step() {
  if (!round_) return;
  TROUPE_CHECK(began_, "with lanes, each micro-batch is begun");
  end_round();
}

// The round's lanes are in one subtree, which has a sum if any lane has.
void LaneSum::end_round() {
  round_->end_round();
  for (const model::ParamStore* const sum : round_->sums())
    add_store(team_, *sum, sum_);
  round_->begin_round();
}

}  // namespace troupe::learn
