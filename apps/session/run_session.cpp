#include "apps/session/run_session.hpp"

#include "actors/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/cli/stop_signal.hpp"
#include "runtime/async/run_on.hpp"

#include <utility>

namespace troupe::app {
namespace {

using core::Result;

constexpr std::uint64_t kPlaceLooks = 5;  // every so many looks the run folder is looked at

// The controller as a role: when it ends, so does the session.
class ControllerRole final : public actors::RoleAdapter<actors::Controller> {
 public:
  ControllerRole(std::shared_ptr<actors::Controller> controller,
                 std::string checkpoint,
                 Outcome& outcome,
                 std::string self)
      : RoleAdapter(controller, std::move(self)),
        controller_(std::move(controller)),
        checkpoint_(std::move(checkpoint)),
        outcome_(outcome) {}

  async::task<Result<void>> run() override {
    auto loaded = controller_->load(checkpoint_);
    Result<void> ended = co_await std::move(loaded);
    if (ended) ended = co_await controller_->run();
    outcome_.set(std::move(ended));
    co_return Result<void>();
  }

 private:
  std::shared_ptr<actors::Controller> controller_;
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
  for (bool told = false; !outcome_.wait_for(actors::limits::kLookEvery);) {
    if (++looks % kPlaceLooks == 0) look_at_place();
    if (stop_requested() && !std::exchange(told, true)) {
      parts_.listener->on_note(stop_deadline() ? "stopping within run.grace_s; Ctrl-C ends at once"
                                               : "stopping after this update, with a checkpoint; "
                                                 "Ctrl-C again ends at once");
    }
  }
  Result<void> ended = outcome_.wait();
  over_ = ended.has_value();
  if (parts_.check_place()) plane_.write_report();
  return ended;
}

// A head that another one has superseded ends; a folder that is gone is noticed by whoever writes.
void RunSession::look_at_place() {
  const auto place = parts_.check_place();
  if (!place && place.error().code == core::ErrorCode::kClosed) end(place.error());
}

async::task<Result<void>> RunSession::start() {
  parts_.data.watched = [listener = parts_.listener](const actors::GroupCounts& counts) {
    listener->on_groups(counts);
  };
  parts_.data.scoring.note = [listener = parts_.listener](const std::string& text) {
    listener->on_note(text);
  };
  auto data = actors::factory_of<actors::DataRole>([this](actors::RoleContext context) {
    return std::make_shared<actors::DataRole>(std::move(context), std::move(parts_.data),
                                              std::move(parts_.prompts),
                                              std::move(parts_.evaluation), std::move(parts_.sink));
  });
  TROUPE_CO_TRY(co_await host(actors::kDataRole, std::move(data), &data_host_));
  cluster::RoleHost::Factory controller = [this](const cluster::RoleServices& services) {
    return make_controller(services);
  };
  co_return co_await host("controller/0", std::move(controller), &controller_host_);
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

Result<std::unique_ptr<cluster::Role>> RunSession::make_controller(
    const cluster::RoleServices& services) {
  auto controller = std::make_shared<actors::Controller>(actors::context_of(services), parts_.plan,
                                                         *parts_.listener);
  plane_.prepare(*controller);
  {
    const std::lock_guard lock(mutex_);
    controller_ = controller;
    controller_strand_ = services.executor;
  }
  return std::unique_ptr<cluster::Role>(
      std::make_unique<ControllerRole>(std::move(controller), std::move(parts_.checkpoint),
                                       outcome_, services.transport->identity().self));
}

// Turns kPeerLost into kDeadline, because kPeerLost would start a new session: only the controller
// reports it, when policy or critic is lost. A role that fails here had time to come back.
void RunSession::end(core::Error error) {
  if (error.code == core::ErrorCode::kPeerLost) error.code = core::ErrorCode::kDeadline;
  {
    const std::lock_guard lock(mutex_);
    if (!controller_strand_) return outcome_.set(core::fail(std::move(error)));
  }
  tell([error](actors::Controller& controller) { controller.end(error); });
}

void RunSession::tell(std::function<void(actors::Controller&)> what) {
  const std::lock_guard lock(mutex_);
  if (!controller_strand_) return;
  async::post(controller_strand_, [told = controller_, what = std::move(what)] {
    if (const auto controller = told.lock()) what(*controller);
  });
}

async::task<void> RunSession::stop() {
  if (controller_host_) co_await controller_host_->stop();
  controller_host_.reset();
  if (data_host_) co_await data_host_->stop();
  data_host_.reset();
}

}  // namespace troupe::app
