// Wiring of the head: transport, company, door, and the two roles of each play.
#include "apps/session/head.hpp"

#include "actors/critic/critic_relay.hpp"
#include "actors/limits.hpp"
#include "actors/node/company_role.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/cli/build_facts.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/session/head_cast.hpp"
#include "apps/session/head_door.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/node/local_nodes.hpp"
#include "apps/session/outcome.hpp"
#include "apps/session/roles/learn_settings.hpp"
#include "apps/session/status_desk.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/config/render.hpp"
#include "runtime/core/rng.hpp"

#include <mutex>
#include <optional>
#include <vector>

namespace troupe::app {
namespace {

using actors::CompanyRole;
using core::ErrorCode;
using core::Result;

std::uint64_t fresh_run_id() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return core::derive_seed(static_cast<std::uint64_t>(now), 1);
}

async::task<void> take_view(std::shared_ptr<CompanyRole> company, actors::CompanyView* out) {
  *out = company->view();
  co_return;
}

// The company as it is, asked on its strand.
async::task<actors::CompanyView> view_of(std::shared_ptr<CompanyRole> company,
                                         async::Executor strand) {
  actors::CompanyView view;
  co_await async::run_on(std::move(strand), take_view(std::move(company), &view));
  co_return view;
}

}  // namespace

struct Head::Impl {
  Impl(HeadOptions head_options, Note head_note)
      : options(std::move(head_options)), note(std::move(head_note)), own_io(1), role_io(1) {}

  HeadOptions options;
  Note note;
  std::uint64_t run_id = fresh_run_id();
  async::SteadyTimers timers;
  async::IoThreads own_io;   // the company: hears signs of life whatever the roles do
  async::IoThreads role_io;  // controller, data, status
  async::DeviceThread hashing{"contents"};  // waits for the run's hashes
  actors::Admission admission;
  std::unique_ptr<cluster::Exchange> exchange;
  std::unique_ptr<LocalNodes> nodes;
  std::unique_ptr<HeadDoor> door;
  std::unique_ptr<StatusDesk> desk;
  std::shared_ptr<CompanyRole> company;
  async::Executor company_strand;
  std::unique_ptr<cluster::RoleHost> company_host;
  std::uint64_t plays = 0;
  bool over = false;  // the run is finished

  // While a play lasts.
  std::mutex outcome_mutex;
  std::shared_ptr<Outcome> outcome = std::make_shared<Outcome>();
  actors::Controller* controller = nullptr;  // used on its strand
  async::Executor controller_strand;
  bool live = false;  // company's strand: the controller hears of comings and goings
  std::optional<core::Error> hopeless;  // company's strand: why no run can go on
  std::unique_ptr<cluster::RoleHost> data_host, relay_host, controller_host;

  std::shared_ptr<Outcome> current_outcome() {
    const std::lock_guard lock(outcome_mutex);
    return outcome;
  }

  Result<void> open();
  Result<void> open_exchange();
  async::task<Result<void>> start_company();
  actors::CompanyOptions company_options() const;
  actors::CompanyHooks company_hooks();
  async::task<actors::CompanyHooks::Settings> settings_of_contents();
  void tell_controller(std::function<void(actors::Controller&)> what);
  void end_play(core::Error error);
  void role_up(const std::string& role);
  void role_lost(const std::string& role, const core::Error& cause);

  Result<void> play(Play play);
  void write_report();
  async::task<Result<void>> start_play(Play* play);
  async::task<Result<void>> await_roles();
  async::task<Result<void>> host_relay();
  async::task<void> stop_play();
  async::task<void> go_deaf();
  async::task<Result<void>> host(const std::string& name,
                                 Factory factory,
                                 std::unique_ptr<cluster::RoleHost>& place);
  void close();
  async::task<void> dismiss();
  async::task<void> stop_company();

  // Runs a coroutine with a result on a strand and waits for it, on the calling thread.
  Result<void> run_here(async::IoThreads& io, async::task<Result<void>> body) {
    Result<void> result;
    io.run(store_result(std::move(body), &result));
    return result;
  }
  static async::task<void> store_result(async::task<Result<void>> body, Result<void>* out) {
    *out = co_await std::move(body);
  }
};

// ---- opening

Result<void> Head::Impl::open() {
  TROUPE_TRY(open_exchange());
  TROUPE_TRY_ASSIGN(socket, exchange->listen());
  nodes = std::make_unique<LocalNodes>(socket, options.run_folder / "nodes");
  TROUPE_TRY(run_here(own_io, start_company()));
  StatusParts status;
  status.config = &options.config;
  status.run_id = run_id;
  status.run_folder = options.run_folder;
  status.exchange = exchange.get();
  status.view = [company = company, strand = company_strand] { return view_of(company, strand); };
  status.note = note;
  TROUPE_TRY_ASSIGN(desk_made, StatusDesk::open(std::move(status), role_io, timers));
  desk = std::move(desk_made);
  TROUPE_TRY_ASSIGN(
      opened, HeadDoor::open(options.config, options.run_folder, own_io, socket, admission, note));
  door = std::move(opened);
  async::post(company_strand, [company = company] { company->begin(); });
  return {};
}

Result<void> Head::Impl::open_exchange() {
  cluster::Exchange::Hooks hooks;
  hooks.admit = [this](const wire::Hello& hello, const std::string& origin) {
    return admission.admit(hello, origin);
  };
  hooks.arrived = [this](const wire::Hello& hello, const std::string& origin) {
    async::post(company_strand,
                [company = company, hello, origin] { company->on_arrived(hello, origin); });
  };
  hooks.lost = [this](const cluster::PeerName& name, std::uint64_t epoch,
                      const core::Error& cause) {
    async::post(company_strand,
                [company = company, name, epoch, cause] { company->on_lost(name, epoch, cause); });
  };
  hooks.refused = [this](const std::string& what) { note("refused: " + what); };
  TROUPE_TRY_ASSIGN(made, cluster::Exchange::create({}, std::move(hooks), timers));
  exchange = std::move(made);
  return {};
}

actors::CompanyOptions Head::Impl::company_options() const {
  actors::CompanyOptions company_options;
  company_options.run_id = run_id;
  company_options.arithmetic = kArithmetic;
  company_options.build = build_version();
  cast_roles(options.config, company_options);
  company_options.config = config::resolved_yaml(options.config, {});
  company_options.settings = {{"updates", std::to_string(options.updates)}};
  company_options.threads = options.cores.threads;
  return company_options;
}

actors::CompanyHooks Head::Impl::company_hooks() {
  actors::CompanyHooks hooks;
  hooks.role_up = [this](const std::string& role) { role_up(role); };
  hooks.role_lost = [this](const std::string& role, const core::Error& cause) {
    role_lost(role, cause);
  };
  hooks.note = note;
  hooks.hopeless = [this](const core::Error& error) {
    hopeless = error;
    end_play(error);
  };
  hooks.fence = [this](const std::string& name, const core::Error& cause) {
    exchange->forget(name, cause);
  };
  hooks.contents = [this] { return settings_of_contents(); };
  hooks.status = [this] { return desk->json(company->view()); };
  hooks.attach = [this](actors::AttachReward it) { return desk->ask_controller(std::move(it)); };
  hooks.reweight = [this](actors::ReweightReward it) { return desk->ask_controller(std::move(it)); };
  hooks.detach = [this](actors::DetachReward it) { return desk->ask_controller(std::move(it)); };
  return hooks;
}

// What a node of another host holds against its own files before it plays.
async::task<actors::CompanyHooks::Settings> Head::Impl::settings_of_contents() {
  if (!options.contents) co_return Settings();
  auto job = [this] { return options.contents(); };
  auto hashes = co_await hashing.run(std::move(job));
  if (!hashes) note("nodes cannot compare their files: " + hashes.error().message);
  co_return hashes ? settings_of(*hashes) : Settings();
}

async::task<Result<void>> Head::Impl::start_company() {
  company_strand = own_io.make_strand();
  TROUPE_CO_TRY_ASSIGN(endpoint, exchange->join({"company/0", core::RunId{0}, 1}, company_strand));
  cluster::RoleHost::Hooks hooks;
  hooks.failed = [this](const cluster::PeerName& who, const core::Error& error) {
    current_outcome()->set(core::fail(error.within(who)));
  };
  company_host = std::make_unique<cluster::RoleHost>(std::move(endpoint), std::move(hooks));
  auto factory = actors::factory_of<CompanyRole>([this](actors::RoleContext context) {
    company = std::make_shared<CompanyRole>(std::move(context), company_options(), admission,
                                            *nodes, company_hooks());
    return company;
  });
  co_return co_await company_host->start(std::move(factory));
}

// ---- comings and goings, on the company's strand

void Head::Impl::tell_controller(std::function<void(actors::Controller&)> what) {
  if (!live) return;
  async::post(controller_strand, [this, what = std::move(what)] {
    if (controller != nullptr) what(*controller);
  });
}

// Somebody other than the controller ends the run: it saves first, where there is something to
// save. One who was lost for good has stayed away: nothing to be played again.
void Head::Impl::end_play(core::Error error) {
  if (error.code == ErrorCode::kPeerLost) error.code = ErrorCode::kDeadline;
  if (!live) return current_outcome()->set(core::fail(std::move(error)));
  tell_controller([error](actors::Controller& told) { told.end(error); });
}

void Head::Impl::role_up(const std::string& role) {
  desk->role_up(role);
  tell_controller([role, epoch = company->epoch_of(role)](actors::Controller& told) { told.peer_up(role, epoch); });
}

void Head::Impl::role_lost(const std::string& role, const core::Error& cause) {
  desk->role_lost(role);
  tell_controller([role, cause](actors::Controller& told) { told.peer_lost(role, cause); });
}

// ---- a play

async::task<Result<void>> Head::Impl::host(const std::string& name,
                                           Factory factory,
                                           std::unique_ptr<cluster::RoleHost>& place) {
  const cluster::Identity identity{name, core::RunId{run_id}, plays};
  TROUPE_CO_TRY_ASSIGN(endpoint, exchange->join(identity, role_io.make_strand()));
  cluster::RoleHost::Hooks hooks;
  hooks.failed = [this, name](const cluster::PeerName& who, const core::Error& error) {
    if (name == "controller/0") return current_outcome()->set(core::fail(error.within(who)));
    async::post(company_strand, [this, ended = error.within(who)] { end_play(ended); });
  };
  place = std::make_unique<cluster::RoleHost>(std::move(endpoint), std::move(hooks));
  co_return co_await place->start(std::move(factory));
}

async::task<Result<void>> Head::Impl::await_roles() {
  std::vector<std::string> kinds = {"policy", "reward"};
  if (has_critic(options.config)) kinds.push_back("critic");
  if (has_reference(options.config)) kinds.push_back("reference");
  company->begin_run();
  const auto deadline = async::Deadline::after(timers, actors::limits::kSpawnDeadline);
  for (;;) {
    const auto look = async::Deadline::after(timers, actors::limits::kLookEvery);
    auto up = co_await company->await_up(kinds, look);
    if (up) co_return up;
    if (hopeless) co_return core::fail(*hopeless);
    if (up.error().code != ErrorCode::kDeadline ||
        deadline.remaining(timers) <= core::Duration::zero())
      co_return up;
    if (stop_requested()) {
      co_return core::fail(ErrorCode::kInterrupted, "stopped as asked; " + up.error().message);
    }
  }
}

async::task<Result<void>> Head::Impl::host_relay() {
  using actors::CriticRelay;
  auto factory = actors::factory_of<CriticRelay>([](actors::RoleContext context) {
    return std::make_shared<CriticRelay>(std::move(context), "critic/0");
  });
  co_return co_await host(actors::kCriticRelay, std::move(factory), relay_host);
}

async::task<Result<void>> Head::Impl::start_play(Play* play) {
  Result<void> up;
  co_await async::run_on(company_strand, store_result(await_roles(), &up));
  if (!up) co_return up;
  desk->play_begins();
  play->data.options.watched = [listener = play->listener](const actors::GroupCounts& counts) {
    listener->on_groups(counts);
  };
  TROUPE_CO_TRY(co_await host("data/0", data_factory(std::move(play->data)), data_host));
  if (has_critic(options.config)) TROUPE_CO_TRY(co_await host_relay());
  ControllerParts parts;
  parts.plan = play->plan;
  parts.peers.generators.clear();  // they are told of as they are up
  if (has_critic(options.config)) parts.peers.critic = "critic/0";
  parts.checkpoint = play->checkpoint;
  parts.listener = play->listener;
  parts.made = [this](actors::Controller& made, async::Executor strand) {
    controller = &made;
    controller_strand = std::move(strand);
    made.when_sick([this](const std::string& role, std::uint64_t epoch, const core::Error& why) {
      async::post(company_strand, [this, role, epoch, why] { company->restart(role, epoch, why); });
    });
    made.when_published([this](const actors::Published& published) {
      if (published.source.tcp_port == 0) return;
      door->set_weights_port(static_cast<std::uint16_t>(published.source.tcp_port));
    });
  };
  parts.ended = [ended = current_outcome()](Result<void> result) { ended->set(std::move(result)); };
  TROUPE_CO_TRY(
      co_await host("controller/0", controller_factory(std::move(parts)), controller_host));
  async::post(company_strand, [this] {
    live = true;
    for (const auto& [name, part] : company->cast().parts()) {
      if (part.kind == "generator" && part.state == actors::PartState::kUp) role_up(name);
    }
    for (const auto& [role, node] : company->view().brought)
      role_up(role);
  });
  co_return Result<void>();
}

async::task<void> Head::Impl::go_deaf() {
  live = false;
  co_return;
}

async::task<void> Head::Impl::stop_play() {
  co_await async::run_on(company_strand, go_deaf());
  if (controller_host) co_await controller_host->stop();
  controller = nullptr;
  controller_host.reset();
  if (relay_host) co_await relay_host->stop();
  relay_host.reset();
  if (data_host) co_await data_host->stop();
  data_host.reset();
  co_await async::run_on(company_strand, company->end_run());
}

void Head::Impl::write_report() {
  actors::CompanyView view;
  own_io.run(async::run_on(company_strand, take_view(company, &view)));
  if (auto written = desk->write_report(std::move(view)); !written) note(written.error().message);
}

Result<void> Head::Impl::play(Play play_now) {
  ++plays;
  if (plays > 1) {
    const std::lock_guard lock(outcome_mutex);
    outcome = std::make_shared<Outcome>();
  }
  const auto waited_for = current_outcome();
  Result<void> started = run_here(role_io, start_play(&play_now));
  // What made a start impossible says more than that it did not come about.
  if (!started && !waited_for->is_set()) waited_for->set(std::move(started));
  for (bool told = false; !waited_for->wait_for(actors::limits::kLookEvery);) {
    if (stop_requested() && !std::exchange(told, true)) {
      note("stopping after this update, with a checkpoint; Ctrl-C again ends at once");
    }
  }
  Result<void> ended = waited_for->wait();
  over = ended.has_value();
  if (play_now.folder_here()) write_report();
  role_io.run(stop_play());
  return ended;
}

// ---- the end

async::task<void> Head::Impl::dismiss() {
  const auto deadline = async::Deadline::after(timers, cluster::limits::kShutdownDeadline);
  co_await async::run_on(company_strand, company->dismiss_all(deadline, over));
}

async::task<void> Head::Impl::stop_company() {
  co_await company_host->stop();
}

void Head::Impl::close() {
  if (company) own_io.run(dismiss());  // through the door, too
  if (door) door->stop();
  if (desk) desk->close();
  if (company_host) own_io.run(stop_company());
  nodes.reset();
  if (exchange) {
    if (auto closed = exchange->close(cluster::limits::kShutdownDeadline); !closed) {
      note(closed.error().message);
    }
  }
  company_host.reset();
  company.reset();
  desk.reset();
  own_io.join();
  role_io.join();
}

Head::Head(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Head::~Head() {
  impl_->close();
}

Result<std::unique_ptr<Head>> Head::open(HeadOptions options, Note note) {
  auto head =
      std::unique_ptr<Head>(new Head(std::make_unique<Impl>(std::move(options), std::move(note))));
  TROUPE_TRY(head->impl_->open());
  return head;
}

Result<void> Head::play(Play play) {
  return impl_->play(std::move(play));
}

std::string Head::address() const {
  return impl_->door->address();
}

std::string Head::status_text() const {
  const std::uint16_t port = impl_->desk->http_port();
  return port == 0 ? "" : "; http://127.0.0.1:" + std::to_string(port) + "/metrics";
}

}  // namespace troupe::app
