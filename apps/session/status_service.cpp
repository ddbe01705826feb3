#include "apps/session/status_service.hpp"

#include "actors/company/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/session/limits.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/role_notes.hpp"
#include "runtime/config/method.hpp"
#include "runtime/core/open_files.hpp"
#include "runtime/store/atomic_folder.hpp"

namespace troupe::session {
namespace {

std::uint64_t groups_of(const config::TrainConfig& config) {
  const bool samples = config.method == config::kPpo;
  return samples ? static_cast<std::uint64_t>(config.rollout.batch_size) : 0;
}

// A role without requests of its own: it only asks others.
struct Asker {};

}  // namespace

StatusService::StatusService(StatusParts parts, async::IoThreads& io, async::Timers& timers)
    : parts_(std::move(parts)), io_(io), timers_(timers), opened_(timers.now()), asked_(timers) {}

async::task<Result<void>> StatusService::start() {
  const cluster::Identity identity{"status/0", core::RunId{parts_.run_id},
                                   core::first_epoch(parts_.generation) + 1};
  auto place = parts_.exchange->join(identity, io_.make_strand());
  cluster::RoleRecipe recipe;
  recipe.factory = actors::factory_of<Asker>([this](actors::RoleContext given) {
    context_ = std::move(given);
    context_.scope->spawn("watch", watch());
    return std::make_shared<Asker>();
  });
  cluster::RoleHost::Hooks hooks;
  TROUPE_CO_TRY_SET(
      host_, co_await cluster::host_role(std::move(place), std::move(recipe), std::move(hooks)));
  co_return Result<void>();
}

async::task<Result<void>> StatusService::watch() {
  RoleNotes notes(groups_of(*parts_.config), timers_.now());
  for (;;) {
    co_await async::sleep_for(timers_, limits::kStatusEvery);
    const auto view = co_await parts_.view();
    co_await asked_.ask(context_, view);
    for (const std::string& note : notes.look(asked_.newest(view), timers_.now()))
      parts_.note(note);
  }
}

async::task<std::string> StatusService::controller_state() {
  actors::RoleContext quick = context_;
  quick.call_deadline = actors::company::limits::kSuspectAfter;
  const actors::QueryStatus query;
  auto state = co_await actors::ask(quick, "controller/0", query);
  if (!state) co_return std::string();
  co_return std::move(state->json);
}

async::task<StatusFacts> StatusService::facts_of(actors::company::CompanyView view) {
  StatusFacts facts;
  facts.controller = co_await controller_state();
  facts.roles = asked_.newest(view);
  facts.company = std::move(view);
  facts.groups = groups_of(*parts_.config);
  const auto counters = parts_.exchange->counters();
  facts.frames = counters.frames_in + counters.frames_out;
  facts.bytes = counters.bytes_in + counters.bytes_out;
  facts.refused = counters.refused;
  facts.stray = counters.stray;
  const core::TimePoint began = session_began_.load();
  const core::TimePoint since = began == core::TimePoint{} ? opened_ : began;
  facts.watched_s = std::chrono::duration<double>(timers_.now() - since).count();
  facts.busy_together_s = asked_.busy_together_s();
  co_return facts;
}

async::task<StatusFacts> StatusService::newest_facts_of(actors::company::CompanyView view) {
  co_await asked_.ask(context_, view);
  auto facts = facts_of(std::move(view));
  co_return co_await std::move(facts);
}

async::task<StatusFacts> StatusService::on_strand(async::task<StatusFacts> facts) {
  auto there = async::run_on(context_.scope->executor(), std::move(facts));
  co_return co_await std::move(there);
}

async::task<net::HttpResponse> StatusService::serve(net::HttpRequest request) {
  net::HttpResponse response;
  if (request.method != "GET") {
    response.status = 405;
    co_return response;
  }
  if (request.path == "/healthz") {
    response.body = "ok\n";
    co_return response;
  }
  if (request.path != "/metrics" && request.path != "/status") {
    response.status = 404;
    response.body = "there are /metrics, /status and /healthz\n";
    co_return response;
  }
  auto view = co_await parts_.view();
  auto asked = facts_of(std::move(view));
  const StatusFacts facts = co_await on_strand(std::move(asked));
  const bool metrics = request.path == "/metrics";
  response.body = metrics ? status_metrics(facts) : status_json(facts);
  response.content_type = metrics ? "text/plain; version=0.0.4" : "application/json";
  co_return response;
}

Result<void> StatusService::open_http() {
  const std::string& listen = parts_.config->cluster.status_listen;
  if (listen.empty()) return {};
  TROUPE_TRY_ASSIGN(address, parse_address(listen, "--cluster.status_listen"));
  net::HttpServerOptions options;
  options.host = address.first;
  options.port = address.second;
  options.connections_max = core::share_of_files(options.connections_max);
  auto server = net::HttpServer::open(
      io_, options, [this](net::HttpRequest request) { return serve(std::move(request)); });
  if (!server) return core::fail(server.error().within("--cluster.status_listen " + listen));
  http_ = std::move(*server);
  return {};
}

StatusService::~StatusService() {
  close();
}

Result<std::unique_ptr<StatusService>> StatusService::open(StatusParts parts,
                                                           async::IoThreads& io,
                                                           async::Timers& timers) {
  auto service = std::unique_ptr<StatusService>(new StatusService(std::move(parts), io, timers));
  if (service->parts_.config->log.trace) {
    TROUPE_TRY_ASSIGN(trace, TraceFile::create(service->parts_.run_folder / "trace.json"));
    service->asked_.trace_into(std::move(trace));
  }
  TROUPE_TRY(io.run(service->start()));
  TROUPE_TRY(service->open_http());
  return service;
}

async::task<Result<std::string>> StatusService::json(actors::company::CompanyView view) {
  auto asked = facts_of(std::move(view));
  const StatusFacts facts = co_await on_strand(std::move(asked));
  co_return status_json(facts);
}

void StatusService::session_begins() {
  session_began_ = timers_.now();
}

Result<void> StatusService::write_report(actors::company::CompanyView view) {
  auto asked = newest_facts_of(std::move(view));
  const StatusFacts facts = io_.run(on_strand(std::move(asked)));
  return store::replace_file(parts_.run_folder / "status.json", status_json(facts) + "\n");
}

void StatusService::close() {
  if (std::exchange(closed_, true)) return;
  if (http_) http_->stop();
  if (host_) io_.run(host_->stop());
  asked_.close();
}

}  // namespace troupe::session
