#include "actors/controller/controller.hpp"

#include "actors/limits.hpp"
#include "runtime/core/at_exit.hpp"

namespace troupe::actors {

Controller::Controller(RoleContext context, RunPlan plan, RunListener& listener)
    : run_(std::move(context), std::move(plan), listener),
      fleet_(run_,
             [this](const experience::Ticket& ticket) {
               run_.scope->spawn("", issuer_.reissue_retired(ticket));
             }),
      rewards_(run_),
      issuer_(run_, fleet_, rewards_),
      checkpointer_(run_),
      stop_(run_, fleet_, rewards_, checkpointer_),
      updates_(run_, fleet_, issuer_, checkpointer_, stop_) {}

async::task<core::Result<void>> Controller::run() {
  core::Result<void> ended;
  if (early_) {
    ended = core::fail(*early_);
  } else {
    ended = co_await async::with_scope(&Controller::live, this);
  }
  if (ended) co_return ended;
  co_return co_await checkpointer_.save_last(ended.error());
}

async::task<core::Result<void>> Controller::live(async::Scope& scope, Controller* self) {
  scope.spawn("", self->company());
  while (self->run_.scope == nullptr && !self->updates_.ending())
    co_await self->run_.changed.wait(async::Deadline::none());
  TROUPE_CO_TRY(co_await self->updates_.run());
  scope.cancel();  // ends transfers of weights that are still under way, and timers
  co_return core::Result<void>();
}

// Runs everything beside the update loop. An error here ends the run only after the loop has
// finished its update, so that what the policy learned is also committed and can be saved.
async::task<core::Result<void>> Controller::company() {
  core::Result<void> ended;
  {
    // Nothing may use the company's scope after this block.
    const core::AtExit leave([this] {
      updates_.stop_watching();
      run_.scope = nullptr;
    });
    ended = co_await async::with_scope(&Controller::begin_company, this);
  }
  if (!ended) updates_.end_after_update(ended.error());
  while (!ended && run_.whole_steps > 0 && !checkpointer_.state_lost() && !run_.given_up)
    co_await run_.changed.wait(async::Deadline::none());
  co_return ended;
}

async::task<core::Result<void>> Controller::begin_company(async::Scope& scope, Controller* self) {
  self->run_.scope = &scope;
  self->fleet_.begin();
  scope.spawn("", self->issuer_.run());
  scope.spawn("", self->stop_.watch());
  scope.spawn("", self->rewards_.await_absent());
  self->run_.changed.notify_all();
  co_return core::Result<void>();
}

void Controller::end(core::Error error) {
  if (run_.scope == nullptr) {
    if (!early_) early_ = std::move(error);
    return;
  }
  run_.scope->spawn("", fail_with(std::move(error)));
}

async::task<core::Result<void>> Controller::fail_with(core::Error error) {
  co_return core::fail(std::move(error));
}

void Controller::peer_up(const std::string& name, std::uint64_t epoch) {
  if (name.starts_with("generator/")) {
    fleet_.up(name, epoch);
  } else {
    run_.listener.on_peer(name, true, "");
    rewards_.up(name);
  }
}

void Controller::peer_lost(const std::string& name, const core::Error& error) {
  if (fleet_.knows(name)) return fleet_.lost(name, error.message);
  run_.listener.on_peer(name, false, error.message);
  if (checkpointer_.holds_state(name)) {
    checkpointer_.lose_state();
    const bool named = error.message.find(name) != std::string::npos;
    end({core::ErrorCode::kPeerLost, named ? error.message : name + ": " + error.message});
  } else if (rewards_.is_attached(name) && run_.scope != nullptr) {
    run_.scope->spawn("", rewards_.lose(name, error.message));
  }
}

async::task<core::Result<Ack>> Controller::on(DrainGenerator request) {
  const std::chrono::milliseconds wait(request.wait_ms);
  const auto deadline = async::Deadline::after(*run_.context.timers, wait);
  auto drained = fleet_.drain(std::move(request.name), deadline);
  co_await std::move(drained);
  co_return Ack{};
}

async::task<core::Result<Status>> Controller::on(QueryStatus) {
  co_return Status{snapshot_json(snapshot())};
}

wire::Amounts Controller::amounts() const {
  const ControllerSnapshot now = snapshot();
  return {{"version", static_cast<double>(now.version)},
          {"updates", static_cast<double>(now.done)},
          {"queue", static_cast<double>(now.queue)}};
}

ControllerSnapshot Controller::snapshot() const {
  ControllerSnapshot now;
  now.version = run_.starts.all().empty() ? 0 : run_.starts.newest();
  now.done = run_.done;
  now.issued = run_.issued;
  now.queue = fleet_.waiting();
  now.generators = fleet_.lines();
  now.staleness = updates_.staleness();
  now.counts = run_.counts;
  now.reward_set = rewards_.board().set();
  now.rewards = rewards_.board().members();
  return now;
}

}  // namespace troupe::actors
