#include "actors/controller/early_stop.hpp"

#include "actors/controller/limits.hpp"

namespace troupe::actors::controller {

using Step = Grace::Step;

// Not in the middle of an update. The last update of a run is saved with its evaluation and model.
bool EarlyStop::may_save() const {
  return run_.whole_steps == 0 && checkpointer_.unsaved() && run_.committed < run_.plan.updates;
}

// The time to keep free for a checkpoint. While nothing is trained it may be made at once: if
// nobody knows how long it takes, half of the time is kept for it.
core::Duration EarlyStop::reserve(core::TimePoint until) const {
  const auto& step = run_.grace.under_way();
  if (step == Step::kSave || (step != Step::kTrain && !may_save())) return core::Duration::zero();
  if (const auto known = run_.grace.expected(Step::kSave)) return *known;
  return step == Step::kTrain ? core::Duration::zero() : (until - *asked_) / 2;
}

bool EarlyStop::short_of_time() {
  const auto until = run_.listener.stop_deadline();
  if (!until) return false;
  const core::TimePoint now = run_.context.timers->now();
  if (!asked_) asked_ = now;
  return now + run_.grace.rest(now) + reserve(*until) > *until;
}

async::task<void> EarlyStop::pass() {
  ending_ = ending_ || short_of_time();
  while (ending_)
    co_await run_.changed.wait(async::Deadline::none());
}

async::task<core::Result<void>> EarlyStop::watch() {
  for (;;) {
    co_await async::sleep_for(*run_.context.timers, limits::kLookEvery);
    if (!run_.listener.stop_requested()) continue;
    if (alone_() || ending_ || short_of_time()) break;
  }
  ending_ = true;
  const auto until = run_.listener.stop_deadline();
  if (until) {
    TROUPE_CO_TRY(co_await save_in_time(*until));
    const std::string said = words();
    run_.given_up = true;
    run_.listener.on_given_up(said);
    co_return core::fail(core::ErrorCode::kInterrupted, said);
  }
  const std::uint64_t committed = run_.committed;
  if (may_save()) TROUPE_CO_TRY(co_await checkpointer_.save(committed, false));
  co_return core::fail(
      core::ErrorCode::kInterrupted,
      "stopped as asked: nothing can finish update " + std::to_string(committed + 1),
      "run the same command again to go on from update " + std::to_string(committed));
}

async::task<core::Result<void>> EarlyStop::save() {
  saved_ = co_await checkpointer_.save(run_.committed, false);
  co_return core::Result<void>();
}

// Saves if there is something to save, and time for it.
async::task<core::Result<void>> EarlyStop::save_in_time(core::TimePoint until) {
  const auto left = [&] { return until - run_.context.timers->now(); };
  const auto known = run_.grace.expected(Step::kSave).value_or(core::Duration::zero());
  if (!may_save() || known > left()) co_return core::Result<void>();
  run_.scope->spawn("", save());
  while (!saved_ && left() > core::Duration::zero())
    co_await async::sleep_for(*run_.context.timers, limits::kLookEvery / 10);
  if (saved_ && !*saved_) co_return *saved_;
  co_return core::Result<void>();
}

std::string EarlyStop::words() const {
  const std::uint64_t saved = checkpointer_.saved().value_or(run_.plan.first_update);
  const bool inside = run_.grace.under_way() == Step::kTrain && run_.done == run_.committed;
  const std::uint64_t last = run_.done + (inside ? 1 : 0);
  const std::string& unit = run_.plan.unit;
  std::string text = "stopped within run.grace_s: ";
  text += saved_ ? run_.plan.name_of(saved) + " is saved"
                 : "no checkpoint was written, the last has " + std::to_string(saved) + " " + unit +
                       "s";
  text += run_.plan.logs_groups ? "; what was sampled since is in the experience log, and the same "
                                  "command goes on from it"
                                : "; the same command goes on from it";
  if (last > saved) {
    text += ", learning again from ";
    text += last == saved + 1
                ? run_.plan.name_of(last)
                : unit + "s " + std::to_string(saved + 1) + " to " + std::to_string(last);
  }
  return text;
}

}  // namespace troupe::actors::controller
