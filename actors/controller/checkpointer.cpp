#include "actors/controller/checkpointer.hpp"

#include "actors/controller/disk_patience.hpp"
#include "actors/controller/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/containment.hpp"
#include "actors/protocol/limits.hpp"

#include <algorithm>

namespace troupe::actors::controller {

std::vector<std::string> Checkpointer::stateful_roles() const {
  if (run_.plan.has_critic) return {kPolicyRole, kCriticRole, kDataRole};
  return {kPolicyRole, kDataRole};
}

bool Checkpointer::holds_state(const std::string& peer) const {
  const auto roles = stateful_roles();
  return std::find(roles.begin(), roles.end(), peer) != roles.end();
}

core::Failure Checkpointer::failure_of(core::Error error) {
  state_lost_ = state_lost_ || is_loss(error.code);
  return core::fail(std::move(error));
}

bool Checkpointer::unsaved() const {
  return run_.committed > run_.plan.first_update && saved_ != run_.committed;
}

async::task<core::Result<void>> Checkpointer::load(std::string folder) {
  const std::uint64_t first = run_.plan.first_update;
  std::vector<Loaded> held;  // by the stateful roles, the policy first
  for (std::string role : stateful_roles()) {
    LoadState load{folder, first};
    auto loaded = co_await ask(run_.context, std::move(role), std::move(load));
    if (!loaded) co_return failure_of(loaded.error());
    held.push_back(*loaded);
  }
  held.pop_back();  // of the data role, which is new in each session
  const std::uint64_t known = held.front().updates;
  const bool in_log = known >= first && known <= std::max(first, run_.plan.logged_until);
  const bool fits = std::all_of(held.begin(), held.end(), [&](const Loaded& loaded) {
    return loaded.from <= first && loaded.updates == known;
  });
  if (!fits || !in_log) co_return misfit(known);
  run_.known = known;
  co_return core::Result<void>();
}

core::Failure Checkpointer::misfit(std::uint64_t known) {
  state_lost_ = true;
  return core::fail(ErrorCode::kPeerLost,
                    "the policy has learned from " + std::to_string(known) +
                        " updates, which do not fit the experience log from update " +
                        std::to_string(run_.plan.first_update + 1) + " on");
}

core::Failure Checkpointer::update_failed(std::uint64_t update,
                                          const core::Error& error,
                                          std::string what) {
  const bool passes = reaction_to(AskedFor::kUpdate, error.code) == Reaction::kResumed;
  if (!run_.plan.restarts || !passes || is_loss(error.code)) return failure_of(error);
  FailedUpdate failed{update, 1};
  if (run_.plan.failed.update == update) failed.times += run_.plan.failed.times;
  run_.listener.on_failed_update(failed);
  if (what.empty()) what = run_.plan.name_of(update + 1);
  what += " failed (" + std::to_string(failed.times) + " of " +
          std::to_string(actors::limits::kUpdateFailures_max) + ")";
  if (failed.times >= actors::limits::kUpdateFailures_max) return core::fail(error.within(what));
  lose_state();
  core::Error lost = error.within(what);
  lost.code = ErrorCode::kPeerLost;
  return core::fail(std::move(lost));
}

async::task<core::Result<void>> Checkpointer::save(std::uint64_t done, bool models) {
  std::function<async::task<core::Result<void>>()> step = [this, done, models] {
    return save_once(done, models);
  };
  auto saved = co_await patiently(&run_, "the checkpoint waits", std::move(step));
  if (!saved || !regroups(done)) co_return saved;
  lose_state();  // nothing was learned since
  co_return core::fail(ErrorCode::kPeerLost, run_.regroup);
}

// Whether the run shall go on in another session now that this is saved.
bool Checkpointer::regroups(std::uint64_t done) const {
  return !run_.regroup.empty() && run_.plan.restarts && done < run_.plan.updates &&
         !run_.listener.stop_requested();
}

async::task<core::Result<void>> Checkpointer::save_once(std::uint64_t done, bool models) {
  const auto whole = run_.whole_step();
  run_.listener.on_phase("checkpoint");
  const core::TimePoint begin = run_.context.timers->now();
  run_.grace.begin(Grace::Step::kSave, begin);
  auto saved = co_await write(done, models);
  if (saved) {
    saved_ = done;
    pace_.saved(begin, run_.context.timers->now());
    run_.grace.end(run_.context.timers->now());
  } else {
    run_.grace.skip();
  }
  save_failed_ = !saved;
  co_return saved;
}

async::task<core::Result<void>> Checkpointer::write(std::uint64_t done, bool models) {
  TROUPE_CO_TRY_ASSIGN(folder, run_.listener.begin_checkpoint(done));
  for (std::string role : stateful_roles()) {
    SaveState state{folder.string()};
    auto saved = co_await ask(run_.context, std::move(role), std::move(state));
    if (!saved) co_return failure_of(saved.error());
  }
  if (models) {
    SaveModel model{(folder / "model").string()};
    auto model_saved = co_await ask(run_.context, kPolicyRole, model);
    if (!model_saved) co_return failure_of(model_saved.error());
  }
  if (models && run_.plan.save_critic && run_.plan.has_critic) {
    SaveModel critic{(folder / "critic_model").string()};
    auto critic_saved = co_await ask(run_.context, kCriticRole, critic);
    if (!critic_saved) co_return failure_of(critic_saved.error());
  }
  TROUPE_CO_TRY_SET(saved_at_, co_await run_.listener.commit_checkpoint(done));
  co_return core::Result<void>();
}

// Reports only the loss of learned state as kPeerLost, after which the run goes on from its last
// checkpoint. For any other role that stayed away too long the code becomes kDeadline.
async::task<core::Result<void>> Checkpointer::save_last(core::Error error) {
  if (run_.given_up) co_return core::fail(std::move(error));
  if (state_lost_) {
    error.code = ErrorCode::kPeerLost;
    co_return core::fail(std::move(error));
  }
  if (run_.diverged) {
    const std::string good = run_.listener.on_diverged(*run_.diverged);
    const std::string fact = good.empty() ? "there is no checkpoint before them"
                                          : "the last checkpoint before them is " + good;
    co_return core::fail(error.also(fact));
  }
  if (error.code == ErrorCode::kPeerLost) error.code = ErrorCode::kDeadline;
  if (const auto place = run_.listener.check_place(); !place) {
    error = place.error();  // the real cause, whatever failed first
    save_failed_ = false;
  }
  if (!unsaved() || save_failed_) co_return core::fail(std::move(error));
  const std::string update = run_.plan.name_of(run_.committed);
  if (run_.committed != run_.done) {
    co_return core::fail(
        error.also(update + " cannot be saved: the update after it was trained but not logged"));
  }
  run_.context.call_deadline = limits::kLastSave;
  auto saved = co_await save_once(run_.committed, false);
  const std::string fact = saved ? update + " is saved in " + saved_at_.string()
                                 : update + " cannot be saved: " + saved.error().message;
  co_return core::fail(error.also(fact));
}

}  // namespace troupe::actors::controller
