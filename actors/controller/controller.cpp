#include "actors/controller/controller.hpp"

#include "actors/controller/limits.hpp"

namespace troupe::actors::controller {
namespace {

std::uint32_t work_of_generators(const RunPlan& plan) {
  return static_cast<std::uint32_t>(plan.episodes ? limits::kGeneratorCalls_max
                                                  : limits::kGeneratorGroups_max);
}

}  // namespace

Controller::Controller(RoleContext context, RunPlan plan, RunListener& listener)
    : Conductor(std::move(context), std::move(plan), listener),
      generators_(run_, retired(), {.work_max = work_of_generators(run_.plan)}),
      environments_(
          run_,
          retired(),
          {.noun = "environment", .weights = false, .patient = run_.plan.environments_come}),
      calls_(run_, generators_),
      rewards_(run_),
      issuer_(run_, tickets(), rewards_),
      stop_(run_, checkpointer_, [this] { return alone(); }),
      updates_(run_, generators_, tickets(), issuer_, checkpointer_, stop_) {}

std::function<void(const experience::Ticket&)> Controller::retired() {
  return [this](const experience::Ticket& ticket) {
    run_.scope->spawn("", issuer_.reissue_retired(ticket));
  };
}

void Controller::begin_beside() {
  generators_.begin();
  if (run_.plan.episodes) environments_.begin();
  run_.scope->spawn("", issuer_.run());
  run_.scope->spawn("", stop_.watch());
  run_.scope->spawn("", rewards_.await_absent());
}

// Nobody is there to finish the update or the evaluation with.
bool Controller::alone() {
  const bool sampling = run_.awaited || run_.grace.under_way() == Grace::Step::kEvaluate;
  const bool able = generators_.able() > 0 && tickets().able() > 0;
  return (sampling && !able) || (run_.issued == run_.done && rewards_.awaits());
}

void Controller::peer_up(const std::string& name, std::uint64_t epoch) {
  if (name.starts_with("generator/")) return generators_.up(name, epoch);
  if (name.starts_with("environment/")) return environments_.up(name, epoch);
  Conductor::peer_up(name, epoch);
  rewards_.up(name);
}

void Controller::peer_lost(const std::string& name, const core::Error& error) {
  if (generators_.knows(name)) return generators_.lost(name, error.message);
  if (environments_.knows(name)) return environments_.lost(name, error.message);
  Conductor::peer_lost(name, error);
  if (checkpointer_.holds_state(name)) return;
  if (rewards_.is_attached(name) && run_.scope != nullptr)
    run_.scope->spawn("", rewards_.lose(name, error.message));
}

async::task<core::Result<Ack>> Controller::on(DrainGenerator request) {
  const std::chrono::milliseconds wait(request.wait_ms);
  const auto deadline = async::Deadline::after(*run_.context.timers, wait);
  Fleet& fleet = environments_.knows(request.name) ? environments_ : generators_;
  auto drained = fleet.drain(std::move(request.name), deadline);
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
  now.queue = generators_.waiting() + environments_.waiting();
  now.generators = generators_.lines();
  for (GeneratorLine& line : environments_.lines())
    now.generators.push_back(std::move(line));
  now.staleness = updates_.staleness();
  now.counts = run_.counts;
  now.reward_set = rewards_.board().set();
  now.rewards = rewards_.board().members();
  now.formula = rewards_.board().formula();
  return now;
}

}  // namespace troupe::actors::controller
