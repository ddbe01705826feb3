#include "runtime/cluster/role_host.hpp"

#include "runtime/async/run_on.hpp"
#include "runtime/core/check.hpp"

#include <limits>

namespace troupe::cluster {

using wire::Frame;

async::task<Result<void>> Role::run() {
  co_return Result<void>();
}

RoleHost::RoleHost(std::shared_ptr<Endpoint> endpoint,
                   Hooks hooks,
                   async::DeviceQueue* device,
                   core::TeamRunner* team)
    : endpoint_(std::move(endpoint)),
      hooks_(std::move(hooks)),
      device_(device),
      team_(team),
      scope_(endpoint_->strand()),
      activity_(endpoint_->timers()) {}

RoleHost::~RoleHost() {
  TROUPE_CHECK(!running_, "a role is stopped before its host goes");
}

async::task<Result<void>> RoleHost::start(Factory factory) {
  auto started = async::run_on(endpoint_->strand(), start_here(std::move(factory)));
  auto result = co_await std::move(started);
  co_return result;
}

async::task<void> RoleHost::stop() {
  auto stopped = async::run_on(endpoint_->strand(), stop_here());
  co_await std::move(stopped);
}

async::task<Result<void>> RoleHost::start_here(Factory factory) {
  TROUPE_CHECK(!running_, "a role starts once");
  const RoleServices services{
      endpoint_, scope_, endpoint_->timers(), endpoint_->strand(), activity_, device_, team_};
  auto made = factory(services);
  if (!made) co_return core::fail(made.error().within(name()));
  role_ = std::move(made).value();
  running_ = true;
  std::function<void(const core::Error&)> report_error = [this](const core::Error& error) {
    report(error);
  };
  scope_.on_error(report_error);
  endpoint_->on_bug(report_error);
  endpoint_->serve([this](Frame request) { return handle(std::move(request)); });
  scope_.spawn(name(), role_->run());
  co_return Result<void>();
}

async::task<Result<Frame>> RoleHost::handle(Frame request) {
  const wire::HostRequest kind = wire::read_host_request(request);
  if (kind == wire::HostRequest::kNone) {
    auto answered = co_await role_->handle(std::move(request));
    co_return answered;
  }
  TROUPE_CO_TRY_ASSIGN(header, wire::read_header(request));
  const wire::Header answer = wire::reply_header(header, name());
  if (kind == wire::HostRequest::kPing) {
    co_return wire::pong_frame(answer, name(), reported_ ? "failed" : role_->state());
  }
  if (kind == wire::HostRequest::kQueryRole) {
    TROUPE_CO_TRY_ASSIGN(spans_after, wire::read_query_role(request));
    co_return wire::role_report_frame(answer, role_report(spans_after, 1));
  }
  // Posted, so that the acknowledgement goes out first.
  if (hooks_.shutdown_asked) {
    async::post(endpoint_->strand(), [asked = hooks_.shutdown_asked, who = name()] { asked(who); });
  }
  co_return wire::ack_frame(answer);
}

void RoleHost::report_to(std::function<void(wire::RoleReport)> told) const {
  async::post(endpoint_->strand(), [this, told = std::move(told)] {
    if (!role_) return;
    constexpr auto kNoSpans = std::numeric_limits<std::uint64_t>::max();
    told(role_report(kNoSpans, 0));
  });
}

wire::RoleReport RoleHost::role_report(std::uint64_t spans_after, std::size_t asking) const {
  const auto seconds = [](core::Duration span) {
    return std::chrono::duration<double>(span).count();
  };
  const auto time = activity_.report(spans_after);
  wire::RoleReport report;
  report.name = endpoint_->identity().self;
  report.state = reported_ ? "failed" : role_->state();
  report.actor = endpoint_->actor();
  report.epoch = endpoint_->identity().epoch;
  report.inbox = static_cast<std::uint32_t>(endpoint_->inbox() - asking);
  report.pending = static_cast<std::uint32_t>(endpoint_->pending_calls());
  report.frames_in = endpoint_->frames_in();
  report.frames_out = endpoint_->frames_out();
  report.busy_s = seconds(time.busy);
  report.paused_s = seconds(time.paused);
  report.wall_s = seconds(time.wall);
  for (const auto& [cause, span] : time.idle)
    report.idle_s.emplace_back(cause, seconds(span));
  report.amounts = role_->amounts();
  for (const auto& span : time.spans) {
    report.spans.push_back({std::string(core::state_name(span.state)), span.cause,
                            static_cast<std::uint64_t>(span.begin.time_since_epoch().count()),
                            static_cast<std::uint64_t>(span.end.time_since_epoch().count())});
  }
  report.next_span = time.next_span;
  report.waits_for = endpoint_->waits_for();
  return report;
}

void RoleHost::report(const core::Error& error) {
  if (std::exchange(reported_, true)) return;
  if (hooks_.failed) hooks_.failed(name(), error);
}

async::task<void> RoleHost::stop_here() {
  co_await endpoint_->stop();
  scope_.cancel();
  auto joined = co_await scope_.join();
  static_cast<void>(joined);  // reported when it happened
  role_ = nullptr;
  running_ = false;
}

async::task<Result<std::unique_ptr<RoleHost>>> host_role(Result<std::shared_ptr<Endpoint>> place,
                                                         RoleRecipe recipe,
                                                         RoleHost::Hooks hooks) {
  if (!place) co_return place.failure();
  auto host =
      std::make_unique<RoleHost>(std::move(*place), std::move(hooks), recipe.device, recipe.team);
  auto started = co_await host->start(std::move(recipe.factory));
  if (!started) co_return started.failure();
  co_return host;
}

}  // namespace troupe::cluster
