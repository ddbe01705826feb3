#include "apps/session/status_service.hpp"

#include "actors/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/session/limits.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/reward_words.hpp"
#include "runtime/config/method.hpp"
#include "runtime/core/open_files.hpp"
#include "runtime/store/atomic_folder.hpp"

namespace troupe::app {
namespace {

using core::Result;

// A sum of the roles' counters that grows whenever anything makes progress.
double progress_of(const std::map<std::string, wire::RoleReport>& roles) {
  double sum = 0;
  for (const auto& [name, report] : roles) {
    for (const auto& [what, value] : report.amounts) {
      if (what == "tokens" || what == "updates" || what == "version" || what == "scored")
        sum += value;
    }
  }
  return sum;
}

std::string who_waits(const std::map<std::string, wire::RoleReport>& roles) {
  std::string text;
  for (const auto& [name, report] : roles) {
    if (report.waits_for.empty() || name == "status/0") continue;
    text += (text.empty() ? "" : "; ") + name + " waits for " + report.waits_for;
  }
  return text.empty() ? "no role waits for another" : text;
}

std::uint64_t groups_of(const config::TrainConfig& config) {
  const bool samples = config.method == config::kPpo;
  return samples ? static_cast<std::uint64_t>(config.rollout.batch_size) : 0;
}

CallCosts call_costs(const wire::RoleReport& report) {
  return {amount_of(report, "workers"), amount_of(report, "call_s"),
          amount_of(report, "timed_calls"), amount_of(report, "together")};
}

// A role without requests of its own: it only asks others.
struct Asker {};

}  // namespace

StatusService::StatusService(StatusParts parts, async::IoThreads& io, async::Timers& timers)
    : parts_(std::move(parts)), io_(io), timers_(timers), opened_(timers.now()) {}

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
  moved_ = timers_.now();
  for (;;) {
    co_await async::sleep_for(timers_, limits::kStatusEvery);
    auto view = co_await parts_.view();
    view_ = std::move(view);
    co_await ask_all();
    watch_progress();
    tell_costs();
    tell_servers();
  }
}

async::task<void> StatusService::ask_all() {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    names = up_;
  }
  names.insert({"controller/0", "data/0"});
  std::erase_if(roles_, [&](const auto& one) { return !names.contains(one.first); });
  const auto places = nodes_by_role(view_);  // for the trace
  std::vector<async::task<Result<void>>> all;
  for (const std::string& name : names) {
    const auto place = places.find(name);
    all.push_back(ask_one(name, place == places.end() ? "head" : place->second));
  }
  auto asked = co_await async::all(std::move(all));
  static_cast<void>(asked);  // who does not answer is lost or slow; the company reports that
}

async::task<Result<void>> StatusService::ask_one(std::string role, std::string node) {
  const auto deadline = async::Deadline::after(timers_, actors::limits::kSuspectAfter);
  const auto known = roles_.find(role);
  const std::uint64_t after = known == roles_.end() ? 0 : known->second.next_span;
  auto frame = wire::query_role_frame(context_.transport->new_request(deadline), after);
  auto answer = co_await context_.transport->call(role, std::move(frame), deadline);
  if (!answer) co_return Result<void>();
  auto report = wire::read_role_report(*answer);
  if (!report) co_return Result<void>();
  const auto now_known = roles_.find(role);
  const bool twice = now_known != roles_.end() && now_known->second.next_span != after;
  if (twice) report->spans.clear();  // another round had them meanwhile
  together_.add(role, report->spans);
  if (trace_) {
    trace_->add(node, role, report->spans);
  }
  report->spans.clear();
  at_[role] = timers_.now();
  roles_[role] = std::move(*report);
  co_return Result<void>();
}

RoleReports StatusService::newest(const actors::CompanyView& view) const {
  RoleReports reports = roles_;
  for (auto& [role, report] : reports)
    report.age_s = std::chrono::duration<double>(timers_.now() - at_.at(role)).count();
  return newest_reports(std::move(reports), view);
}

void StatusService::watch_progress() {
  const RoleReports roles = newest(view_);
  const double progress = progress_of(roles);
  const core::TimePoint now = timers_.now();
  if (progress != last_progress_) {
    last_progress_ = progress;
    moved_ = now;
  } else if (now - moved_ >= limits::kNoProgress) {
    moved_ = now;
    parts_.note("no progress for " + std::to_string(limits::kNoProgress.count() / 1000) +
                " s: " + who_waits(roles));
  }
}

void StatusService::tell_costs() {
  constexpr double kWorthTelling_s = 0.1;
  for (const auto& [role, report] : newest(view_)) {
    if (!role.starts_with("reward/") || costs_told_.contains(role)) continue;
    const CallCosts costs = call_costs(report);
    if (seconds_an_update(costs, groups_of(*parts_.config)) < kWorthTelling_s) continue;
    costs_told_.insert(role);
    parts_.note(role + ": " + call_arithmetic(costs, groups_of(*parts_.config)) +
                " (more --reward.workers, or an async function, make it less)");
  }
}

void StatusService::tell_servers() {
  const core::TimePoint now = timers_.now();
  for (const auto& [role, report] : newest(view_)) {
    const std::string words =
        servers_words(amount_of(report, "servers"), amount_of(report, "servers_away"));
    const auto told = servers_told_.find(role);
    const bool lately = told != servers_told_.end() && now - told->second < limits::kNoProgress;
    if (words.empty() || lately) continue;
    servers_told_[role] = now;
    parts_.note(role + ": " + words);
  }
}

async::task<std::string> StatusService::controller_state() {
  actors::RoleContext quick = context_;
  quick.call_deadline = actors::limits::kSuspectAfter;
  const actors::QueryStatus query;
  auto state = co_await actors::ask(quick, "controller/0", query);
  if (!state) co_return std::string();
  co_return std::move(state->json);
}

async::task<StatusFacts> StatusService::facts_of(actors::CompanyView view) {
  StatusFacts facts;
  facts.controller = co_await controller_state();
  facts.roles = newest(view);
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
  facts.busy_together_s = together_.seconds();
  co_return facts;
}

async::task<StatusFacts> StatusService::newest_facts_of(actors::CompanyView view) {
  co_await ask_all();
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
    service->trace_.emplace(std::move(trace));
  }
  TROUPE_TRY(io.run(service->start()));
  TROUPE_TRY(service->open_http());
  return service;
}

void StatusService::role_up(const std::string& role) {
  const std::lock_guard lock(mutex_);
  up_.insert(role);
}

void StatusService::role_lost(const std::string& role) {
  const std::lock_guard lock(mutex_);
  up_.erase(role);
}

async::task<Result<std::string>> StatusService::json(actors::CompanyView view) {
  auto asked = facts_of(std::move(view));
  const StatusFacts facts = co_await on_strand(std::move(asked));
  co_return status_json(facts);
}

void StatusService::session_begins() {
  session_began_ = timers_.now();
}

Result<void> StatusService::write_report(actors::CompanyView view) {
  auto asked = newest_facts_of(std::move(view));
  const StatusFacts facts = io_.run(on_strand(std::move(asked)));
  return store::replace_file(parts_.run_folder / "status.json", status_json(facts) + "\n");
}

void StatusService::close() {
  if (std::exchange(closed_, true)) return;
  if (http_) http_->stop();
  if (host_) io_.run(host_->stop());
  if (trace_) trace_->close();
}

}  // namespace troupe::app
