// The company's side of the head: the exchange, the hooks, the end.
#include "tests/sim/world/head.hpp"

#include "actors/company/pass.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/check.hpp"

#include <boost/asio/co_spawn.hpp>

namespace troupe::sim {

using actors::company::Company;

Head::Head(
    Stage& stage, std::uint64_t number, std::uint64_t run, std::uint64_t generation, Calls calls)
    : stage_(stage),
      process_(stage.time, "head", kHeadHost, number),
      run_(run),
      generation_(generation),
      calls_(std::move(calls)),
      disk_(stage.disk, process_),
      main_(process_.make_strand()),
      company_strand_(process_.make_strand()),
      admission_(core::RunId{run}, core::first_epoch(generation)) {}

Head::~Head() = default;

void Head::begin() {
  boost::asio::co_spawn(main_, live(this), rethrow);
}

async::task<void> Head::live(Head* self) {
  auto started = co_await start_company(self);
  TROUPE_CHECK(started.has_value(), "the company's role starts");
  self->scope_ = std::make_unique<async::Scope>(self->main_);
  if (self->killed_) co_return;
  self->scope_->spawn("train", train(self));
}

async::task<core::Result<void>> Head::start_company(Head* self) {
  auto endpoint = self->stage_.links.join(
      self->process_, {"company/0", core::RunId{0}, core::first_epoch(self->generation_) + 1});
  self->status_ = self->stage_.links.join(
      self->process_,
      {"status/0", core::RunId{self->run_}, core::first_epoch(self->generation_) + 1});
  self->asks_ = std::make_unique<async::Scope>(self->status_->strand());
  cluster::RoleRecipe recipe;
  recipe.factory = actors::factory_of<Company>([self](actors::RoleContext context) {
    self->company_ = std::make_shared<Company>(std::move(context), self->company_options(),
                                               self->admission_, *self, *self);
    return self->company_;
  });
  core::Result<std::shared_ptr<cluster::Endpoint>> place = endpoint;
  cluster::RoleHost::Hooks none;
  TROUPE_CO_TRY_SET(self->company_host_, co_await cluster::host_role(
                                             std::move(place), std::move(recipe), std::move(none)));
  async::post(endpoint->strand(), [company = self->company_] { company->begin(); });
  co_return core::Result<void>();
}

actors::company::CompanyOptions Head::company_options() const {
  actors::company::CompanyOptions options;
  options.run_id = run_;
  options.run = "run " + std::to_string(run_);
  options.generation = generation_;
  options.head_wait = kHeadWait;
  options.arithmetic = options.build = "same";
  const auto want = [&options](const std::string& kind, const std::string& name,
                               const std::string& node) {
    options.roles.push_back({kind, name, node});
    options.local_nodes.push_back({node, {kind}});
  };
  const auto want_ranks = [&](const std::string& kind, std::uint64_t ranks) {
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      const std::string number = std::to_string(rank);
      const bool far = stage_.plan.far_rank && kind == "policy" && rank + 1 == ranks;
      if (!far) {
        want(kind, kind + "/" + number, "node/" + kind + (rank == 0 ? "" : "-" + number));
      } else {
        options.roles.push_back({kind, kind + "/" + number, ""});
      }
    }
    for (actors::company::WantedRole& role : options.roles)
      role.ranked = role.ranked || (role.kind == kind && ranks > 1);
  };
  want_ranks("policy", stage_.plan.ranks);
  if (stage_.plan.supervised()) return options;
  if (stage_.plan.critic) want_ranks("critic", stage_.plan.critic_ranks);
  want("reward", "reward/0", "node/reward");
  if (stage_.plan.reference) want("reference", "reference/0", "node/reference");
  want("generator", "generator/0", "node/generator-0");
  return options;
}

template <class Request>
async::task<core::Result<typename Request::Reply>> Head::ask_controller(Request request) {
  actors::RoleContext context;
  context.transport = status_;
  context.timers = &stage_.time;
  auto asked =
      async::run_apart(asks_.get(), actors::ask(context, "controller/0", std::move(request)));
  auto answer = co_await std::move(asked);
  co_return answer;
}

// ---- the exchange ------------------------------------------------------------------------------

void Head::introduced(Node& node, const wire::Hello& hello) {
  Process& process = node.process();
  const std::string origin = process.name() + "#" + std::to_string(process.number());
  if (auto in = admission_.admit(hello, origin); !in) {
    note("refused: " + in.error().message);
    stage_.truth.census.count("link", "refused");
    if (hello.name.starts_with("node/")) {
      const std::string why = in.error().message;
      stage_.links.pass(process_, process, [&node, why] { node.left(why); });
    }
    return;
  }
  Bound& bound = bound_[hello.name];
  if (bound.process != nullptr && bound.process != &process && bound.epoch >= hello.epoch) {
    note("refused: " + hello.name + " of an older epoch");
    return;
  }
  bound = {&process, hello.epoch};
  async::post(company_strand_,
              [company = company_, hello, origin] { company->on_arrived(hello, origin); });
}

bool Head::hears(const Process& of, const cluster::Identity& from) const {
  const auto bound = bound_.find(from.self);
  return bound != bound_.end() && bound->second.process == &of && bound->second.epoch == from.epoch;
}

void Head::tell_lost(const std::string& name, const std::string& why) {
  for (const auto& [role, endpoint] : process_.roles()) {
    async::post(endpoint->strand(), [endpoint = endpoint, name, why] {
      endpoint->on_peer_lost(name, {core::ErrorCode::kPeerLost, name + " is lost: " + why});
    });
  }
}

void Head::connection_lost(Process& of) {
  const auto bound = bound_;
  for (const auto& [name, place] : bound) {
    if (place.process == &of) role_ended(of, {name, core::RunId{run_}, place.epoch});
  }
}

void Head::role_ended(Process& of, const cluster::Identity& role) {
  const auto place = bound_.find(role.self);
  if (place == bound_.end() || place->second.process != &of || place->second.epoch != role.epoch) {
    return;
  }
  bound_.erase(place);
  const std::string why = of.alive() ? "it has stopped" : "its process ended";
  tell_lost(role.self, why);
  async::post(company_strand_, [company = company_, role, why] {
    company->on_lost(role.self, role.epoch, {core::ErrorCode::kPeerLost, why});
  });
}

void Head::fence(const std::string& name, std::uint64_t epoch, const core::Error& cause) {
  const auto bound = bound_.find(name);
  if (bound == bound_.end() || bound->second.epoch > epoch) return;
  bound_.erase(bound);
  tell_lost(name, cause.message);
}

// ---- what the company reports ------------------------------------------------------------------

void Head::end_run(core::Error error) {
  if (error.code == core::ErrorCode::kPeerLost) error.code = core::ErrorCode::kDeadline;
  tell([error](actors::controller::Conductor& conductor) { conductor.end(error); });
}

void Head::tell(std::function<void(actors::controller::Conductor&)> what) {
  if (session_ == nullptr || !session_->strand) return;
  async::post(session_->strand, [told = session_->role, what = std::move(what)] {
    if (const auto conductor = told.lock()) what(*conductor);
  });
}

void Head::role_up(const std::string& role) {
  if (role == actors::controller::kPolicyRole || role == actors::controller::kCriticRole) {
    const auto policy = bound_.find(actors::controller::kPolicyRole),
               critic = bound_.find(actors::controller::kCriticRole);
    if (policy != bound_.end() && critic != bound_.end())
      stage_.links.connect(*policy->second.process, *critic->second.process);
  }
  tell([role, epoch = company_->epoch_of(role)](actors::controller::Conductor& conductor) {
    conductor.peer_up(role, epoch);
  });
}

void Head::hopeless(const core::Error& error) {
  note("hopeless: " + error.message);
  hopeless_ = error;
  end_run(error);
}

void Head::regroup(const std::string& why) {
  regroup_ = why;
  tell([why](actors::controller::Conductor& conductor) { conductor.regroup(why); });
}

void Head::role_lost(const std::string& role, const core::Error& cause) {
  tell([role, cause](actors::controller::Conductor& conductor) {
    conductor.peer_lost(role, cause);
  });
}

core::Result<void> Head::start(const std::string& node,
                               const std::vector<std::string>& kinds,
                               const std::string& pass) {
  calls_.launch(*this,
                {node, kHeadHost, kinds, pass, actors::company::facts_of_pass(pass)->number});
  return {};
}

bool Head::adopt(const std::string& node,
                 const std::vector<std::string>& kinds,
                 const std::string& pass) {
  return calls_.adopt(*this,
                      {node, kHeadHost, kinds, pass, actors::company::facts_of_pass(pass)->number});
}

void Head::note(const std::string& text) {
  if (text.ends_with("keeps running")) stage_.truth.census.count("event", "a role keeps running");
  if (text.find(" continues with ") != std::string::npos)
    stage_.truth.census.count("event", "a gang goes on with fewer ranks");
  stage_.note("head: " + text);
}

// ---- the end -----------------------------------------------------------------------------------

void Head::kill() {
  if (std::exchange(killed_, true)) return;
  process_.kill();
  stage_.links.drop(process_);
  boost::asio::co_spawn(process_.make_strand(), unwind(this), rethrow);
}

async::task<void> Head::unwind(Head* self) {
  // Not cancelled: Asio 1.26 must not cancel what waits for another strand. It ends by itself.
  if (self->session_) self->set_outcome(core::fail(core::ErrorCode::kClosed, "killed"));
  if (self->scope_) {
    auto joined = co_await self->scope_->join();
    static_cast<void>(joined);
  }
  if (self->session_) co_await end_session(self);
  if (self->company_host_) co_await self->company_host_->stop();
  self->company_.reset();
  self->company_host_.reset();
  if (self->status_) co_await self->status_->stop();
  if (self->asks_) {
    auto asked = co_await self->asks_->join();
    static_cast<void>(asked);
  }
  self->unwound_ = true;
}

}  // namespace troupe::sim
