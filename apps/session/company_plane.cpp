#include "apps/session/company_plane.hpp"

#include "actors/company/limits.hpp"
#include "actors/controller/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/cli/build_facts.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/run_session.hpp"
#include "apps/session/wanted_roles.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/collective/gateway_rendezvous.hpp"
#include "runtime/config/render.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/shell_word.hpp"
#include "runtime/core/shortage.hpp"

#include <algorithm>
#include <vector>

namespace troupe::session {
namespace {

using actors::company::Company;

// The company's present state. Runs on its strand.
async::task<actors::company::CompanyView> look_at(std::shared_ptr<Company> company) {
  co_return company->view();
}
async::task<actors::company::CompanyView> view_of(std::shared_ptr<Company> company,
                                                  async::Executor strand) {
  auto view = async::run_on(std::move(strand), look_at(std::move(company)));
  co_return co_await std::move(view);
}

actors::company::CompanyOptions company_options(const CompanyPlaneOptions& options) {
  actors::company::CompanyOptions wanted;
  wanted.run_id = options.run_id;
  wanted.run = options.run_folder.string();
  wanted.generation = options.generation;
  wanted.head_wait = std::chrono::seconds(options.config.cluster.head_wait_s);
  wanted.arithmetic = cli::processor_arithmetic();
  wanted.build = cli::build_version();
  wanted.roles = wanted_roles(options.config);
  wanted.episodes = has_environment(options.config);
  for (const actors::company::WantedRole& role : wanted.roles) {
    auto& nodes = wanted.local_nodes;
    if (role.bound.empty()) continue;
    const auto known = std::ranges::find(nodes, role.bound, &actors::company::LocalNode::name);
    if (known == nodes.end()) {
      nodes.push_back({role.bound, {role.kind}});
    } else if (std::ranges::count(known->kinds, role.kind) == 0) {
      known->kinds.push_back(role.kind);
    }
  }
  wanted.config = config::resolved_yaml(options.config, {});
  wanted.settings = {{"updates", std::to_string(options.updates)}};
  wanted.threads = options.cores.threads;
  return wanted;
}

}  // namespace

CompanyPlane::CompanyPlane(CompanyPlaneOptions options)
    : options_(std::move(options)),
      own_io_(1),
      role_io_(1),
      admission_(core::RunId{options_.run_id}, core::first_epoch(options_.generation)) {}

Result<std::unique_ptr<CompanyPlane>> CompanyPlane::open(CompanyPlaneOptions options) {
  auto plane = std::unique_ptr<CompanyPlane>(new CompanyPlane(std::move(options)));
  TROUPE_TRY(plane->start());
  return plane;
}

Result<void> CompanyPlane::start() {
  TROUPE_TRY(open_exchange());
  TROUPE_TRY_ASSIGN(socket, exchange_->listen());
  nodes_ = std::make_unique<LocalNodes>(socket, options_.run_folder / "nodes",
                                        options_.config.cluster.head_wait_s > 0);
  logs_ = std::make_unique<NodeLogs>(options_.run_folder / "nodes");
  nodes_->end_others(company_options(options_).local_nodes);
  TROUPE_TRY(own_io_.run(start_company()));
  StatusParts parts;
  parts.config = &options_.config;
  parts.run_id = options_.run_id;
  parts.generation = options_.generation;
  parts.run_folder = options_.run_folder;
  parts.exchange = exchange_.get();
  parts.view = [company = company_, strand = strand_] { return view_of(company, strand); };
  parts.note = options_.note;
  TROUPE_TRY_SET(status_, StatusService::open(std::move(parts), role_io_, timers_));
  TROUPE_TRY_SET(gateway_, open_gateway(options_.config, options_.run_folder, socket, admission_,
                                        options_.note));
  async::post(strand_, [company = company_] { company->begin(); });
  return {};
}

Result<void> CompanyPlane::open_exchange() {
  strand_ = own_io_.make_strand();
  cluster::Exchange::Hooks hooks;
  hooks.admit = [this](const wire::Hello& hello, const std::string& origin) {
    return admission_.admit(hello, origin);
  };
  hooks.arrived = [this](const wire::Hello& hello, const std::string& origin) {
    async::post(strand_,
                [company = company_, hello, origin] { company->on_arrived(hello, origin); });
  };
  hooks.lost = [this](const cluster::PeerName& name, std::uint64_t epoch,
                      const core::Error& cause) {
    async::post(strand_,
                [company = company_, name, epoch, cause] { company->on_lost(name, epoch, cause); });
  };
  hooks.refused = [this](const std::string& what) { options_.note("refused: " + what); };
  TROUPE_TRY_SET(exchange_, cluster::Exchange::create(std::move(hooks), timers_));
  return {};
}

// Lets ranks of other hosts come through the gateway to one of this host.
void CompanyPlane::rank_listens(const actors::company::PlacedRole& rank,
                                const std::string& socket) {
  std::string& service = ways_[rank.name];  // the last start's
  if (!service.empty()) gateway_->drop_service(service);
  service = collective::service_of_rank(rank.kind, rank.epoch, static_cast<int>(rank.rank));
  gateway_->set_service(service, socket);
}

// The hashes that a node on another host compares with its own files before it starts a role.
async::task<actors::company::CompanyPort::Settings> CompanyPlane::contents() {
  if (!options_.contents) co_return Settings();
  auto job = [this] { return options_.contents(); };
  auto hashes = co_await hashing_.run(std::move(job));
  if (!hashes) options_.note("nodes cannot compare their files: " + hashes.error().message);
  co_return hashes ? settings_of(*hashes) : Settings();
}

async::task<Result<void>> CompanyPlane::start_company() {
  auto place = exchange_->join(
      {"company/0", core::RunId{0}, core::first_epoch(options_.generation) + 1}, strand_);
  cluster::RoleHost::Hooks hooks;
  hooks.failed = [this](const cluster::PeerName& who, const core::Error& error) {
    news_.give_up(error.within(who));
  };
  cluster::RoleRecipe recipe;
  recipe.factory = actors::factory_of<Company>([this](actors::RoleContext context) {
    company_ = std::make_shared<Company>(std::move(context), company_options(options_), admission_,
                                         *nodes_, *this);
    return company_;
  });
  TROUPE_CO_TRY_SET(company_host_, co_await cluster::host_role(std::move(place), std::move(recipe),
                                                               std::move(hooks)));
  co_return Result<void>();
}

// When policy or critic comes up, introduces the two to each other, so that their messages need not
// pass through this process.
void CompanyPlane::role_up(const std::string& role) {
  status_->role_up(role);
  if (role == actors::controller::kPolicyRole || role == actors::controller::kCriticRole)
    exchange_->introduce(actors::controller::kPolicyRole, actors::controller::kCriticRole);
  news_.role_up(role, company_->epoch_of(role));
}

void CompanyPlane::role_lost(const std::string& role, const core::Error& cause) {
  status_->role_lost(role);
  news_.role_lost(role, cause);
}

async::task<Result<void>> CompanyPlane::await_roles() {
  const std::vector<std::string> kinds = needed_kinds(options_.config);
  company_->begin_run();
  if (options_.config.env.attached) {
    options_.note("episodes wait for environments: `troupe attach environment --join " +
                  core::shell_word(options_.run_folder.string()) +
                  " ...`, or `troupe serve --learn --join ...`");
  }
  const auto deadline = async::Deadline::after(timers_, actors::company::limits::kSpawnDeadline);
  for (;;) {
    const auto look = async::Deadline::after(timers_, actors::controller::limits::kLookEvery);
    auto up = co_await company_->await_up(kinds, look);
    if (auto why = news_.hopeless()) {
      if (why->code == ErrorCode::kPeerLost) why->code = ErrorCode::kDeadline;  // they stay away
      co_return core::fail(*why);
    }
    if (up) {
      arithmetic_ = company_->classes().of(actors::controller::kPolicyRole);
      company_->end_leftovers();
      co_return up;
    }
    if (up.error().code != ErrorCode::kDeadline ||
        deadline.remaining(timers_) <= core::Duration::zero())
      co_return up;
    if (cli::stop_requested()) {
      co_return core::fail(ErrorCode::kInterrupted, "stopped as asked", up.error().message);
    }
  }
}

std::optional<core::Error> CompanyPlane::shortage() {
  return own_io_.run(async::run_on(strand_, shortage_here()));
}

async::task<std::optional<core::Error>> CompanyPlane::shortage_here() {
  for (const char* role : {actors::controller::kPolicyRole, actors::controller::kCriticRole}) {
    const actors::company::PlacedRole* const placed = company_->placement().find(role);
    if (placed == nullptr || placed->last_code != ErrorCode::kResources) continue;
    const core::Error error{ErrorCode::kResources, placed->last_cause};
    co_return error.advising(core::kSmallerRoles);
  }
  co_return std::nullopt;
}

void CompanyPlane::attach(RunSession& session) {
  async::post(strand_, [this, &session] { attach_here(session); });
}

void CompanyPlane::attach_here(RunSession& session) {
  if (!news_.attach(session)) return;
  for (const auto& [name, placed] : company_->placement().roles()) {
    const bool stays = !company_->placement().is_drained(placed.node);
    const bool takes_work = placed.kind == "generator" || placed.kind == "environment" ||
                            placed.kind == actors::kAttachedEnvironment;
    if (takes_work && placed.state == actors::company::RoleState::kUp && stays) role_up(name);
  }
  for (const auto& [role, node] : company_->view().brought)
    role_up(role);
}

async::task<void> CompanyPlane::end_session() {
  news_.detach();
  co_await company_->end_run();
}

CompanyPlane::~CompanyPlane() {
  const bool ours = options_.ours();  // else the nodes and the folder are another head's
  if (company_ && ours) {  // before the gateway closes, so that nodes of other hosts hear of it
    const auto deadline = async::Deadline::after(timers_, cluster::limits::kShutdownDeadline);
    own_io_.run(async::run_on(strand_, company_->dismiss_all(deadline, over_)));
  }
  if (gateway_) close_gateway(*gateway_, ours ? options_.run_folder : "");
  if (status_) status_->close();
  if (company_host_) own_io_.run(company_host_->stop());
  nodes_.reset();
  if (exchange_) {
    if (auto closed = exchange_->close(cluster::limits::kShutdownDeadline); !closed) {
      options_.note(closed.error().message);
    }
  }
  company_host_.reset();
  company_.reset();
  logs_.reset();
  status_.reset();
  own_io_.join();
  role_io_.join();
}

Result<std::shared_ptr<cluster::Endpoint>> CompanyPlane::join(const std::string& name) {
  return exchange_->join(
      {name, core::RunId{options_.run_id}, core::first_epoch(options_.generation) + sessions_},
      role_io_.make_strand());
}

Result<void> CompanyPlane::start_roles() {
  ++sessions_;
  auto started = own_io_.run(async::run_on(strand_, await_roles()));
  if (started) status_->session_begins();
  return started;
}

void CompanyPlane::prepare(actors::controller::Controller& controller) {
  controller.when_sick(
      [this](const std::string& role, std::uint64_t epoch, const core::Error& why) {
        async::post(strand_, [this, role, epoch, why] { company_->restart(role, epoch, why); });
      });
  controller.when_cleared([this](const std::string& role) {
    async::post(strand_, [this, role] { company_->clear(role); });
  });
  controller.when_published([this](const actors::Published& published) {
    if (published.source.tcp_port == 0) return;
    gateway_->set_service("weights", static_cast<std::uint16_t>(published.source.tcp_port));
  });
}

void CompanyPlane::write_report() {
  auto view = own_io_.run(view_of(company_, strand_));
  if (auto written = status_->write_report(std::move(view)); !written) {
    options_.note(written.error().message);
  }
}

void CompanyPlane::stop_roles(bool over) {
  over_ = over;
  own_io_.run(async::run_on(strand_, end_session()));
}

std::string CompanyPlane::status_text() const {
  const std::uint16_t port = status_->http_port();
  return port == 0 ? "" : "; http://127.0.0.1:" + std::to_string(port) + "/metrics";
}

}  // namespace troupe::session
