#include "runtime/engine/driver.hpp"

#include <chrono>
#include <utility>

namespace troupe::engine {
namespace {

constexpr core::Duration kAtOnce = std::chrono::seconds(30);  // packing slice when nothing runs

std::vector<GroupNews> listed(News news) {
  std::vector<GroupNews> all;
  for (auto& [id, one] : news)
    all.push_back(std::move(one));
  return all;
}

}  // namespace

bool EngineDriver::computes() const {
  if (idle()) return false;
  const EngineState state = engine_->state();
  return state.awake() && !state.paused;
}

core::Result<void> EngineDriver::submit(GroupRequest request, Watch watch) {
  if (engine_ == nullptr) return core::fail(core::ErrorCode::kClosed, "there are no weights yet");
  if (resting_) {
    TROUPE_TRY(engine_->wake({.kv = true}));
    resting_ = false;
  }
  const core::GroupId id = request.id;
  const std::int32_t samples = request.samples;
  TROUPE_TRY(engine_->submit(std::move(request)));
  watch_.add(id, samples, watch);
  return {};
}

void EngineDriver::abort(core::GroupId group) {
  if (engine_ != nullptr) engine_->abort(group);
  watch_.drop(group);
}

std::vector<GroupNews> EngineDriver::pause(PauseMode mode) {
  News news;
  watch_.take(engine_->pause(mode), news);
  return listed(std::move(news));
}

EngineTurn EngineDriver::turn(EngineWork work, TurnBounds bounds) {
  EngineTurn turn;
  News news;
  for (const core::GroupId id : work.aborts)
    abort(id);
  for (Submission& one : work.submits) {
    const core::GroupId id = one.request.id;
    const auto taken = submit(std::move(one.request), one.watch);
    if (!taken) news_of(id, news).error = taken.error();
  }
  if (work.intake) pack(work, bounds, turn);
  if (engine_ == nullptr) {
    turn.news = listed(std::move(news));
    return turn;
  }
  if (!turn.swapped) compute(work.intake != nullptr, bounds.span, news);
  if (work.rest && engine_->idle() && !engine_->state().kv_asleep) {
    resting_ = engine_->sleep({.kv = true}).has_value();
  }
  turn.news = listed(std::move(news));
  turn.counters = engine_->counters();
  turn.resting = resting_;
  return turn;
}

void EngineDriver::pack(const EngineWork& work, const TurnBounds& bounds, EngineTurn& turn) {
  const core::Activity::Busy guard(activity_, "pack");
  const bool runs = !idle();
  for (bool done = false; !done;) {
    const auto advanced = work.intake->advance(team_, runs ? bounds.slice : kAtOnce);
    if (!advanced) {
      turn.intake_error = advanced.error();
      return;
    }
    done = *advanced;
    if (!done && runs) return;  // the next slice comes after a step
  }
  auto weights = work.intake->take();
  const core::Version version = weights->version();
  if (const auto installed = install(std::move(weights), work.kv)) {
    turn.swapped = version;
  } else {
    turn.intake_error = installed.error();
  }
}

core::Result<void> EngineDriver::install(std::shared_ptr<const model::PackedWeights> weights,
                                         KvAction action) {
  if (engine_ != nullptr) return engine_->set_weights(std::move(weights), action);
  TROUPE_TRY_SET(engine_, maker_(std::move(weights)));
  return {};
}

void EngineDriver::compute(bool one_step, core::Duration span, News& news) {
  const core::TimePoint end = clock_.now() + span;
  const core::Activity::Busy guard(computes() ? activity_ : nullptr, "step");
  while (computes()) {
    auto finished = engine_->step();
    if (!finished) return fail_groups(finished.error(), news);
    const bool found = !finished->empty();
    watch_.take(std::move(*finished), news);
    if (found || one_step || clock_.now() >= end) break;
  }
  watch_.look(*engine_, news);
}

// Reports the error to the group that caused it, or else to all groups, and aborts them. First
// reports the tokens that they had drawn before the failure.
void EngineDriver::fail_groups(const core::Error& error, News& news) {
  watch_.look(*engine_, news);
  std::vector<core::GroupId> over = watch_.groups();
  if (const auto one = engine_->broken_group()) over.assign(1, *one);
  for (const core::GroupId id : over) {
    abort(id);
    news_of(id, news).error = error;
  }
}

core::Result<std::vector<Sample>> EngineDriver::step() {
  TROUPE_TRY_ASSIGN(finished, engine_->step());
  for (const Sample& sample : finished)
    watch_.count(sample.group);
  return finished;
}

core::Result<std::vector<Sample>> EngineDriver::run() {
  std::vector<Sample> all;
  while (computes()) {
    TROUPE_TRY_ASSIGN(finished, step());
    for (Sample& sample : finished)
      all.push_back(std::move(sample));
  }
  return all;
}

}  // namespace troupe::engine
