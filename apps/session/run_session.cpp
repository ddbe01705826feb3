#include "apps/session/run_session.hpp"

#include "actors/controller/limits.hpp"
#include "apps/cli/stop_signal.hpp"
#include "runtime/async/run_on.hpp"

#include <utility>

namespace troupe::session {
namespace {

constexpr std::uint64_t kPlaceLooks = 5;  // every that many looks the run folder is looked at

// The conductor as a role: when it ends, so does the session.
class ConductorRole final : public cluster::Role {
 public:
  ConductorRole(HostedConductor hosted, std::string checkpoint, Outcome& outcome)
      : hosted_(std::move(hosted)), checkpoint_(std::move(checkpoint)), outcome_(outcome) {}

  async::task<Result<wire::Frame>> handle(wire::Frame request) override {
    return hosted_.role->handle(std::move(request));
  }
  async::task<Result<void>> run() override {
    auto loaded = hosted_.conductor->load(checkpoint_);
    Result<void> ended = co_await std::move(loaded);
    if (ended) {
      auto body = hosted_.conductor->run();
      ended = co_await std::move(body);
    }
    outcome_.set(std::move(ended));
    co_return Result<void>();
  }
  std::string state() const override { return hosted_.role->state(); }
  wire::Amounts amounts() const override { return hosted_.role->amounts(); }

 private:
  HostedConductor hosted_;
  std::string checkpoint_;
  Outcome& outcome_;
};

}  // namespace

RunSession::RunSession(ControlPlane& plane, SessionParts parts)
    : plane_(plane), parts_(std::move(parts)) {}

RunSession::~RunSession() {
  plane_.io().run(stop());
  plane_.stop_roles(over_);
}

Result<void> RunSession::run() {
  auto started = plane_.start_roles();
  if (started && parts_.roles_up) started = parts_.roles_up(plane_.arithmetic());
  if (started) started = plane_.io().run(start());
  if (started) {
    plane_.attach(*this);
  } else {
    outcome_.set(std::move(started));
  }
  std::uint64_t looks = 0;
  for (bool told = false; !outcome_.wait_for(actors::controller::limits::kLookEvery);) {
    if (++looks % kPlaceLooks == 0) look_at_place();
    if (cli::stop_requested() && !std::exchange(told, true)) {
      parts_.listener->on_note(cli::stop_deadline()
                                   ? "stopping within run.grace_s; Ctrl-C ends at once"
                                   : "stopping after this update, with a checkpoint; "
                                     "Ctrl-C again ends at once");
    }
  }
  Result<void> ended = outcome_.wait();
  over_ = ended.has_value();
  if (parts_.check_place()) plane_.write_report();
  return ended;
}

// A head that another one has superseded ends; a folder that is gone is noticed at the next write.
void RunSession::look_at_place() {
  const auto place = parts_.check_place();
  if (!place && place.error().code == core::ErrorCode::kClosed) end(place.error());
}

async::task<Result<void>> RunSession::start() {
  TROUPE_CO_TRY(co_await host(actors::controller::kDataRole, std::move(parts_.data), &data_host_));
  cluster::RoleHost::Factory conductor = [this](const cluster::RoleServices& services) {
    return make_conductor(services);
  };
  co_return co_await host("controller/0", std::move(conductor), &controller_host_);
}

async::task<Result<void>> RunSession::host(std::string name,
                                           cluster::RoleHost::Factory factory,
                                           std::unique_ptr<cluster::RoleHost>* place) {
  cluster::RoleHost::Hooks hooks;
  hooks.failed = [this, is_controller = name == "controller/0"](const std::string& who,
                                                                const core::Error& error) {
    if (is_controller) return outcome_.set(core::fail(error.within(who)));
    end(error.within(who));
  };
  cluster::RoleRecipe recipe{std::move(factory), &log_writer_};
  auto joined = plane_.join(name);
  TROUPE_CO_TRY_SET(
      *place, co_await cluster::host_role(std::move(joined), std::move(recipe), std::move(hooks)));
  co_return Result<void>();
}

Result<std::unique_ptr<cluster::Role>> RunSession::make_conductor(
    const cluster::RoleServices& services) {
  HostedConductor made = parts_.conductor(services);
  {
    const std::lock_guard lock(mutex_);
    conductor_ = made.conductor;
    conductor_strand_ = services.executor;
  }
  return std::unique_ptr<cluster::Role>(
      std::make_unique<ConductorRole>(std::move(made), std::move(parts_.checkpoint), outcome_));
}

// Turns kPeerLost into kDeadline, because kPeerLost would start a new session: only the controller
// reports it, when policy or critic is lost. A role that fails here had time to come back.
void RunSession::end(core::Error error) {
  if (error.code == core::ErrorCode::kPeerLost) error.code = core::ErrorCode::kDeadline;
  {
    const std::lock_guard lock(mutex_);
    if (!conductor_strand_) return outcome_.set(core::fail(std::move(error)));
  }
  tell([error](actors::controller::Conductor& conductor) { conductor.end(error); });
}

void RunSession::tell(std::function<void(actors::controller::Conductor&)> what) {
  const std::lock_guard lock(mutex_);
  if (!conductor_strand_) return;
  async::post(conductor_strand_, [told = conductor_, what = std::move(what)] {
    if (const auto conductor = told.lock()) what(*conductor);
  });
}

async::task<void> RunSession::stop() {
  if (controller_host_) co_await controller_host_->stop();
  controller_host_.reset();
  if (data_host_) co_await data_host_->stop();
  data_host_.reset();
}

}  // namespace troupe::session
