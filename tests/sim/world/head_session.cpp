// The command's side of the head: sessions, checkpoints, the run's outcome.
#include "actors/company/limits.hpp"
#include "actors/controller/limits.hpp"
#include "actors/data/data_state.hpp"
#include "actors/data/group_log.hpp"
#include "actors/data/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/check.hpp"
#include "tests/sim/world/conductor_role.hpp"
#include "tests/sim/world/head.hpp"

namespace troupe::sim {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::Result;

namespace {

// The updates in a checkpoint's name or path.
std::uint64_t step_of(const std::string& checkpoint) {
  return std::stoull(checkpoint.substr(checkpoint.rfind('_') + 1));
}

}  // namespace

// As the program's: a lost policy or critic begins another session from the last checkpoint.
async::task<Result<void>> Head::train(Head* self) {
  Result<void> outcome;
  for (std::uint64_t losses = 0;;) {
    const std::uint64_t done_before = self->done_;
    outcome = co_await run_session(self);
    co_await end_session(self);
    co_await async::sleep_for(self->stage_.time, 1us);  // a crash in a write strikes at this moment
    if (self->killed_) co_return Result<void>();
    if (!outcome && outcome.error().code == ErrorCode::kNoRoom) {
      self->stage_.truth.census.count("event", "a session waits for room");
      co_await async::sleep_for(self->stage_.time, actors::data::limits::kDiskPause_min);
      continue;
    }
    if (outcome || outcome.error().code != ErrorCode::kPeerLost) break;
    losses = self->done_ > done_before ? 1 : losses + 1;
    if (losses > actors::company::limits::kRestarts_max) break;
    self->note(outcome.error().message + "; going on from the last commit");
    self->stage_.truth.census.count("event", "another session");
    if (outcome.error().message == self->regroup_) self->check_regroup();
  }
  self->over_ = true;
  const auto deadline =
      async::Deadline::after(self->stage_.time, cluster::limits::kShutdownDeadline);
  co_await async::run_on(self->company_strand_,
                         self->company_->dismiss_all(deadline, outcome.has_value()));
  self->calls_.over(*self, std::move(outcome));
  co_return Result<void>();
}

// A gang takes its ranks in only where nothing is lost: all that was trained is saved.
void Head::check_regroup() {
  stage_.truth.census.count("event", "a gang has all of its ranks again");
  std::uint64_t saved = 0, trained = stage_.plan.supervised() ? done_ : 0;
  for (const std::string& name : stage_.disk.folders_in(kCheckpoints))
    if (name.starts_with("step_")) saved = std::max(saved, step_of(name));
  for (const LedgerLine& line : read_ledger(stage_.disk.read(kLedger)))
    trained = std::max(trained, line.update + 1);
  stage_.truth.expect(saved == trained, "a gang took ranks in between two checkpoints");
}

async::task<Result<void>> Head::await_roles(Head* self) {
  std::vector<std::string> kinds = {"policy"};
  if (!self->stage_.plan.supervised()) kinds.push_back("reward");
  if (self->stage_.plan.critic) kinds.push_back("critic");
  if (self->stage_.plan.reference) kinds.push_back("reference");
  self->company_->begin_run();
  const auto deadline =
      async::Deadline::after(self->stage_.time, actors::company::limits::kSpawnDeadline);
  for (;;) {
    const auto look =
        async::Deadline::after(self->stage_.time, actors::controller::limits::kLookEvery);
    auto up = co_await self->company_->await_up(kinds, look);
    if (up) self->company_->end_leftovers();
    if (self->killed_) co_return core::fail(ErrorCode::kClosed, "killed");
    if (self->hopeless_) {
      const bool away = self->hopeless_->code == ErrorCode::kPeerLost;
      co_return core::fail(away ? ErrorCode::kDeadline : self->hopeless_->code,
                           self->hopeless_->message);
    }
    if (up || up.error().code != ErrorCode::kDeadline ||
        deadline.remaining(self->stage_.time) <= 0s)
      co_return up;
  }
}

async::task<Result<void>> Head::run_session(Head* self) {
  ++self->sessions_;
  std::string checkpoint;
  for (const std::string& name : self->stage_.disk.folders_in(kCheckpoints)) {
    if (name.starts_with("step_")) checkpoint = std::string(kCheckpoints) + "/" + name;
  }
  const std::uint64_t first = checkpoint.empty() ? 0 : step_of(checkpoint);
  self->done_ = first;
  auto ready = self->stage_.plan.supervised() ? self->take_up_steps(first)
                                              : self->take_up_updates(checkpoint, first);
  if (!ready) co_return ready;
  TROUPE_CO_TRY(co_await async::run_on(self->company_strand_, await_roles(self)));
  TROUPE_CO_TRY(co_await host_session(self, checkpoint, first));
  async::post(self->company_strand_, [self] { self->attach_session(); });
  auto outcome = self->session_->outcome;
  auto taken = co_await async::Oneshot<Result<void>>::take(outcome);
  co_return taken;
}

// What was committed after the checkpoint is done again.
Result<void> Head::take_up_updates(const std::string& checkpoint, std::uint64_t first) {
  if (!checkpoint.empty()) {
    TROUPE_TRY_ASSIGN(state, actors::data::read_state(checkpoint, disk_));
    if (reward_sets_.empty()) {
      for (auto& set : state.reward_sets)
        reward_sets_.emplace(set.set, std::move(set));
    }
  }
  const store::StepLog log(kExperience, disk_);
  TROUPE_TRY_SET(logged_, actors::data::read_log(log, first));
  if (sessions_ == 1) {
    for (const auto& set : logged_.sets)
      reward_sets_.insert_or_assign(set.set, set);
    if (logged_.groups > 0) stage_.truth.census.count("event", "groups from the log");
  }
  std::string kept;
  for (const LedgerLine& line : read_ledger(stage_.disk.read(kLedger)))
    if (line.update < first) kept += line.text() + "\n";
  TROUPE_TRY(disk_.write_file(kLedger, kept));
  stage_.disk.sync(kLedger);
  return {};
}

actors::controller::RunPlan Head::run_plan(std::uint64_t first) const {
  const WorldPlan& shape = stage_.plan;
  actors::controller::RunPlan plan;
  plan.first_update = first;
  plan.logged_until = logged_.end();
  plan.updates = shape.updates;
  plan.groups = shape.groups;
  plan.samples = shape.samples;
  plan.staleness_max = shape.staleness_max;
  plan.earlier_starts = actors::data::earlier_starts(logged_, shape.staleness_max);
  plan.sampling.max_new_tokens = 32;
  plan.save_steps = shape.save_steps;
  plan.save_minutes = 0;
  plan.has_critic = shape.critic;
  if (shape.evaluates) {
    plan.evaluation_groups = 3;
    plan.evaluation.n_samples_per_prompt = 2;
    plan.evaluation.steps = 2;
  }
  plan.filters = shape.filters;
  plan.restarts = true;
  plan.failed = failed_;
  plan.straggler_timeout = shape.straggler_timeout;
  plan.rewards = {{"score", "reward/0", 1}};
  for (const auto& [number, set] : reward_sets_)
    plan.earlier_sets.push_back(set);
  return plan;
}

actors::data::DataRoleOptions Head::data_options() {
  actors::data::DataRoleOptions options;
  options.samples = stage_.plan.samples;
  options.seed = stage_.plan.seed;
  options.scoring.with_reference = stage_.plan.reference;
  options.rewards = {{"score", "reward/0", 1}};
  for (const auto& [number, set] : reward_sets_)
    options.earlier_sets.push_back(set);
  if (stage_.plan.filters)
    options.filter = actors::data::GroupFilter{actors::data::MeanRange{0.3, 5}};
  options.disk = &disk_;
  options.log.folder = kExperience;
  options.log.disk = &disk_;
  options.log.found = logged_;
  options.scoring.note = [this](const std::string& text) { note(text); };
  return options;
}

async::task<Result<void>> Head::host_session(Head* self,
                                             std::string checkpoint,
                                             std::uint64_t first) {
  self->session_ = std::make_unique<Session>();
  Session& session = *self->session_;
  session.outcome = std::make_shared<async::Oneshot<Result<void>>>();
  session.listener = self->listener(first);
  cluster::RoleHost::Hooks hooks;
  hooks.failed = [self](const std::string& who, const core::Error& error) {
    self->stage_.truth.expect(self->killed_, who + " failed: " + error.message);
    self->end_run(error.within(who));
  };
  const bool steps = self->stage_.plan.supervised();
  core::Result<std::shared_ptr<cluster::Endpoint>> place = self->stage_.links.join(
      self->process_, {"data/0", core::RunId{self->run_}, self->session_epoch()});
  cluster::RoleRecipe data_recipe{steps ? self->rows_role() : self->data_role(),
                                  &self->process_.device("experience log")};
  TROUPE_CO_TRY_SET(session.data,
                    co_await cluster::host_role(std::move(place), std::move(data_recipe), hooks));
  place = self->stage_.links.join(self->process_,
                                  {"controller/0", core::RunId{self->run_}, self->session_epoch()});
  cluster::RoleRecipe controller_recipe{steps ? self->step_controller(checkpoint, first)
                                              : self->controller(checkpoint, first)};
  TROUPE_CO_TRY_SET(session.controller, co_await cluster::host_role(
                                            std::move(place), std::move(controller_recipe), hooks));
  co_return Result<void>();
}

std::unique_ptr<FakeListener> Head::listener(std::uint64_t first) {
  auto listener = stage_.plan.supervised()
                      ? step_listener(first)
                      : std::make_unique<FakeListener>(stage_.time, stage_.truth, disk_);
  listener->progress = calls_.progress;
  listener->note = [this](const std::string& text) { note(text); };
  listener->failed_update = [this](const actors::controller::FailedUpdate& failed) {
    failed_ = failed;
  };
  listener->rewards = [this](const actors::SetRewards& set) {
    reward_sets_.try_emplace(set.set, set);
  };
  return listener;
}

cluster::RoleHost::Factory Head::data_role() {
  return actors::factory_of<actors::data::DataRole>([this](actors::RoleContext context) {
    return std::make_shared<actors::data::DataRole>(
        std::move(context), data_options(), std::make_unique<FakePrompts>(),
        stage_.plan.evaluates ? std::make_unique<FakePrompts>() : nullptr,
        fake_sink(stage_.truth, disk_));
  });
}

cluster::RoleHost::Factory Head::controller(std::string checkpoint, std::uint64_t first) {
  return [this, checkpoint,
          first](const cluster::RoleServices& services) -> Result<std::unique_ptr<cluster::Role>> {
    auto role = std::make_shared<actors::controller::Controller>(
        actors::context_of(services), run_plan(first), *session_->listener);
    role->when_sick([this](const std::string& name, std::uint64_t epoch, const core::Error& why) {
      stage_.truth.census.count("event", "a sick role is restarted");
      async::post(company_strand_,
                  [this, name, epoch, why] { company_->restart(name, epoch, why); });
    });
    role->when_cleared([this](const std::string& name) {
      async::post(company_strand_, [this, name] { company_->clear(name); });
    });
    return conducting(std::move(role), checkpoint, services);
  };
}

void Head::set_outcome(Result<void> outcome) {
  async::post(main_,
              [set = session_->outcome, outcome = std::move(outcome)] { set->set(outcome); });
}

void Head::attach_session() {
  if (session_ == nullptr) return;
  if (hopeless_) return end_run(*hopeless_);
  tell([why = regroup_](actors::controller::Conductor& conductor) { conductor.regroup(why); });
  for (const auto& [name, placed] : company_->placement().roles()) {
    const bool stays = !company_->placement().is_drained(placed.node);
    if (placed.kind == "generator" && placed.state == actors::company::RoleState::kUp && stays)
      role_up(name);
  }
  for (const auto& [role, node] : company_->view().brought)
    role_up(role);
}

async::task<void> Head::end_session(Head* self) {
  if (self->session_ == nullptr) co_return;
  if (self->session_->controller) co_await self->session_->controller->stop();
  if (self->session_->data) co_await self->session_->data->stop();
  self->session_.reset();
  if (self->killed_) co_return;
  co_await async::run_on(self->company_strand_, self->company_->end_run());
}

}  // namespace troupe::sim
