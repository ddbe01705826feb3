#include "actors/controller/conductor.hpp"

#include "runtime/core/at_exit.hpp"

namespace troupe::actors::controller {

Conductor::Conductor(RoleContext context, RunPlan plan, RunListener& listener)
    : run_(std::move(context), std::move(plan), listener), checkpointer_(run_) {}

async::task<core::Result<void>> Conductor::run() {
  core::Result<void> ended;
  if (early_) {
    ended = core::fail(*early_);
  } else {
    ended = co_await async::with_scope(&Conductor::live, this);
  }
  if (ended) co_return ended;
  co_return co_await checkpointer_.save_last(ended.error());
}

async::task<core::Result<void>> Conductor::live(async::Scope& scope, Conductor* self) {
  scope.spawn("", self->beside());
  while (self->run_.scope == nullptr && !self->run_.ending)
    co_await self->run_.changed.wait(async::Deadline::none());
  auto body = self->loop();
  TROUPE_CO_TRY(co_await std::move(body));
  scope.cancel();  // ends transfers of weights that are still under way, and timers
  co_return core::Result<void>();
}

// Runs all but the loop. An error here ends the run only after the loop has finished its
// update, so that what the policy learned is also committed and can be saved.
async::task<core::Result<void>> Conductor::beside() {
  core::Result<void> ended;
  {
    // Nothing may use the run's scope after this block.
    const core::AtExit leave([this] {
      leave_scope();
      run_.scope = nullptr;
    });
    ended = co_await async::with_scope(&Conductor::begin_scope, this);
  }
  if (!ended) run_.ending = ended.error();
  while (!ended && run_.whole_steps > 0 && !checkpointer_.state_lost() && !run_.given_up)
    co_await run_.changed.wait(async::Deadline::none());
  co_return ended;
}

async::task<core::Result<void>> Conductor::begin_scope(async::Scope& scope, Conductor* self) {
  self->run_.scope = &scope;
  self->begin_beside();
  self->run_.changed.notify_all();
  co_return core::Result<void>();
}

void Conductor::end(core::Error error) {
  if (run_.scope == nullptr) {
    if (!early_) early_ = std::move(error);
    return;
  }
  run_.scope->spawn("", fail_with(std::move(error)));
}

async::task<core::Result<void>> Conductor::fail_with(core::Error error) {
  co_return core::fail(std::move(error));
}

void Conductor::peer_up(const std::string& name, std::uint64_t) {
  run_.listener.on_peer(name, true, "");
}

void Conductor::peer_lost(const std::string& name, const core::Error& error) {
  run_.listener.on_peer(name, false, error.message);
  if (!checkpointer_.holds_state(name)) return;
  checkpointer_.lose_state();
  const bool named = error.message.find(name) != std::string::npos;
  end({core::ErrorCode::kPeerLost, named ? error.message : name + ": " + error.message});
}

}  // namespace troupe::actors::controller
