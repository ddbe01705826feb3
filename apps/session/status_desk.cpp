// The poll, the pages, the watch over progress.
#include "apps/session/status_desk.hpp"

#include "actors/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/session/busy_together.hpp"
#include "apps/session/limits.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/status_text.hpp"
#include "apps/session/trace_file.hpp"
#include "runtime/net/http_server.hpp"
#include "runtime/store/atomic_file.hpp"

#include <atomic>
#include <mutex>
#include <set>

namespace troupe::app {
namespace {

using core::Result;

// Sums that grow for as long as anything moves.
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
    if (report.waits_for.empty() || name == "desk/0") continue;
    text += (text.empty() ? "" : "; ") + name + " waits for " + report.waits_for;
  }
  return text.empty() ? "no role waits for another" : text;
}

}  // namespace

// The desk as a role: it only asks.
struct Desk {};

struct StatusDesk::Impl {
  Impl(StatusParts given, async::IoThreads& threads, async::Timers& clock)
      : parts(std::move(given)), io(threads), timers(clock), opened(clock.now()) {}

  StatusParts parts;
  async::IoThreads& io;
  async::Timers& timers;
  const core::TimePoint opened;
  actors::RoleContext context;
  std::unique_ptr<cluster::RoleHost> host;
  std::unique_ptr<net::HttpServer> http;
  std::optional<TraceFile> trace;
  BusyTogether together;

  std::mutex mutex;  // of `up`
  std::set<std::string> up;

  // On the desk's strand.
  std::map<std::string, wire::RoleReport> roles;
  std::atomic<core::TimePoint> play_began{};
  double last_progress = -1;
  core::TimePoint moved{};
  bool closed = false;

  async::task<Result<void>> start();
  async::task<Result<void>> watch();
  async::task<void> ask_all();
  async::task<void> ask_one(std::string role, std::string node);
  void watch_progress();
  async::task<std::string> controller_state();
  async::task<void> render(actors::CompanyView view, StatusFacts* facts);
  async::task<net::HttpResponse> serve(net::HttpRequest request);
  async::task<void> report_into(actors::CompanyView view, std::string* text);
  async::task<void> ask_and_render(actors::CompanyView view, StatusFacts* facts);
  Result<void> open_http();
  async::task<void> stop() { co_await host->stop(); }
};

async::task<Result<void>> StatusDesk::Impl::start() {
  const cluster::Identity identity{"desk/0", core::RunId{parts.run_id}, 1};
  TROUPE_CO_TRY_ASSIGN(endpoint, parts.exchange->join(identity, io.make_strand()));
  host = std::make_unique<cluster::RoleHost>(std::move(endpoint), cluster::RoleHost::Hooks{});
  auto factory = actors::factory_of<Desk>([this](actors::RoleContext given) {
    context = std::move(given);
    context.scope->spawn("watch", watch());
    return std::make_shared<Desk>();
  });
  co_return co_await host->start(std::move(factory));
}

async::task<Result<void>> StatusDesk::Impl::watch() {
  moved = timers.now();
  for (;;) {
    co_await async::sleep_for(timers, limits::kStatusEvery);
    co_await ask_all();
    watch_progress();
  }
}

async::task<void> StatusDesk::Impl::ask_all() {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex);
    names = up;
  }
  names.insert({"controller/0", "data/0"});
  std::erase_if(roles, [&](const auto& one) { return !names.contains(one.first); });
  std::map<std::string, std::string> places;  // only the trace wants to know them
  if (trace) {
    const auto view = co_await parts.view();
    for (const actors::Part& part : view.parts) places[part.name] = part.node;
  }
  for (const std::string& name : names) {
    const auto place = places.find(name);
    std::string node = place == places.end() ? "head" : place->second;
    co_await ask_one(name, std::move(node));
  }
}

async::task<void> StatusDesk::Impl::ask_one(std::string role, std::string node) {
  const auto deadline = async::Deadline::after(timers, actors::limits::kSuspectAfter);
  const auto known = roles.find(role);
  const std::uint64_t after = known == roles.end() ? 0 : known->second.next_span;
  auto frame = wire::query_role_frame(context.transport->new_request(deadline), after);
  auto answer = co_await context.transport->call(role, std::move(frame), deadline);
  if (!answer) co_return;  // away or slow; the company says so
  auto report = wire::read_role_report(*answer);
  if (!report) co_return;
  together.add(role, report->spans);
  if (trace) {
    trace->add(node, role, report->spans);
  }
  report->spans.clear();
  roles[role] = std::move(*report);
}

void StatusDesk::Impl::watch_progress() {
  const double progress = progress_of(roles);
  const core::TimePoint now = timers.now();
  if (progress != last_progress) {
    last_progress = progress;
    moved = now;
  } else if (now - moved >= limits::kNoProgress) {
    moved = now;
    parts.note("no progress for " + std::to_string(limits::kNoProgress.count() / 1000) +
               " s: " + who_waits(roles));
  }
}

async::task<std::string> StatusDesk::Impl::controller_state() {
  actors::RoleContext quick = context;
  quick.call_deadline = actors::limits::kSuspectAfter;
  const actors::QueryStatus query;
  auto state = co_await actors::ask(quick, "controller/0", query);
  if (!state) co_return std::string();
  co_return std::move(state->json);
}

async::task<void> StatusDesk::Impl::render(actors::CompanyView view, StatusFacts* facts) {
  facts->controller = co_await controller_state();
  facts->company = std::move(view);
  facts->roles = roles;
  const auto counters = parts.exchange->counters();
  facts->frames = counters.frames_in + counters.frames_out;
  facts->bytes = counters.bytes_in + counters.bytes_out;
  facts->refused = counters.refused;
  facts->stray = counters.stray;
  const core::TimePoint began = play_began.load();
  const core::TimePoint since = began == core::TimePoint{} ? opened : began;
  facts->watched_s = std::chrono::duration<double>(timers.now() - since).count();
  facts->busy_together_s = together.seconds();
}

async::task<void> StatusDesk::Impl::ask_and_render(actors::CompanyView view, StatusFacts* facts) {
  co_await ask_all();
  co_await render(std::move(view), facts);
}

async::task<void> StatusDesk::Impl::report_into(actors::CompanyView view, std::string* text) {
  StatusFacts facts;
  auto rendered = ask_and_render(std::move(view), &facts);
  co_await async::run_on(context.scope->executor(), std::move(rendered));
  *text = status_json(facts);
}

async::task<net::HttpResponse> StatusDesk::Impl::serve(net::HttpRequest request) {
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
  StatusFacts facts;
  auto view = co_await parts.view();
  co_await async::run_on(context.scope->executor(), render(std::move(view), &facts));
  const bool metrics = request.path == "/metrics";
  response.body = metrics ? status_metrics(facts) : status_json(facts);
  response.content_type = metrics ? "text/plain; version=0.0.4" : "application/json";
  co_return response;
}

Result<void> StatusDesk::Impl::open_http() {
  const std::string& listen = parts.config->cluster.status_listen;
  if (listen.empty()) return {};
  TROUPE_TRY_ASSIGN(address, parse_address(listen, "--cluster.status_listen"));
  net::HttpServerOptions options;
  options.host = address.first;
  options.port = address.second;
  auto server = net::HttpServer::open(
      io, options, [this](net::HttpRequest request) { return serve(std::move(request)); });
  if (!server) return core::fail(server.error().within("--cluster.status_listen " + listen));
  http = std::move(*server);
  return {};
}

StatusDesk::StatusDesk(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

StatusDesk::~StatusDesk() {
  close();
}

namespace {
async::task<void> store(async::task<Result<void>> body, Result<void>* out) {
  *out = co_await std::move(body);
}
}  // namespace

Result<std::unique_ptr<StatusDesk>> StatusDesk::open(StatusParts parts,
                                                     async::IoThreads& io,
                                                     async::Timers& timers) {
  auto desk = std::unique_ptr<StatusDesk>(
      new StatusDesk(std::make_unique<Impl>(std::move(parts), io, timers)));
  Impl& impl = *desk->impl_;
  if (impl.parts.config->log.trace) {
    TROUPE_TRY_ASSIGN(trace, TraceFile::create(impl.parts.run_folder / "trace.json"));
    impl.trace.emplace(std::move(trace));
  }
  Result<void> started;
  io.run(store(impl.start(), &started));
  TROUPE_TRY(started);
  TROUPE_TRY(impl.open_http());
  return desk;
}

void StatusDesk::role_up(const std::string& role) {
  const std::lock_guard lock(impl_->mutex);
  impl_->up.insert(role);
}

void StatusDesk::role_lost(const std::string& role) {
  const std::lock_guard lock(impl_->mutex);
  impl_->up.erase(role);
}

async::task<Result<std::string>> StatusDesk::json(actors::CompanyView view) {
  StatusFacts facts;
  co_await async::run_on(impl_->context.scope->executor(), impl_->render(std::move(view), &facts));
  co_return status_json(facts);
}

void StatusDesk::play_begins() {
  impl_->play_began = impl_->timers.now();
}

Result<void> StatusDesk::write_report(actors::CompanyView view) {
  std::string text;
  impl_->io.run(impl_->report_into(std::move(view), &text));
  return store::replace_file(impl_->parts.run_folder / "status.json", text + "\n");
}

std::uint16_t StatusDesk::http_port() const {
  return impl_->http ? impl_->http->port() : 0;
}

const actors::RoleContext& StatusDesk::context() const {
  return impl_->context;
}

void StatusDesk::close() {
  if (std::exchange(impl_->closed, true)) return;
  if (impl_->http) impl_->http->stop();
  if (impl_->host) impl_->io.run(impl_->stop());
  if (impl_->trace) impl_->trace->close();
}

}  // namespace troupe::app
