// Beginning and end of a node.
#include "tests/sim/world/node.hpp"

#include "actors/controller/limits.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/core/check.hpp"
#include "tests/sim/world/head.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace troupe::sim {

Node::Node(Stage& stage, Self self, std::uint64_t number, Head& head, Calls calls)
    : stage_(stage),
      self_(std::move(self)),
      process_(stage.time, self_.name, self_.host, number),
      head_(&head),
      calls_(std::move(calls)),
      maker_(stage, process_) {
  actors::node::HostedRoles::Ports ports;
  ports.place =
      [this](cluster::Identity identity) -> core::Result<std::shared_ptr<cluster::Endpoint>> {
    auto endpoint = stage_.links.join(process_, identity);
    introduce(identity, "");
    if (crossed_) stage_.truth.census.count("event", "a node serves another run");
    return endpoint;
  };
  ports.maker = &maker_;
  ports.note = [this](const std::string& text) { stage_.note(self_.name + ": " + text); };
  hosted_ = std::make_unique<actors::node::HostedRoles>(process_.make_strand(), stage_.time,
                                                        std::move(ports));
}

Node::~Node() = default;

actors::Join Node::join() const {
  actors::Join join;
  join.name = self_.name;
  join.host = join.host_id = self_.host;
  join.pid = static_cast<std::uint32_t>(process_.number());
  join.cores = 2;
  join.arithmetic = join.build = "same";
  join.roles = self_.kinds;
  if (self_.guest()) join.run_id = self_.run;
  return join;
}

void Node::begin() {
  ++starting_;
  stage_.links.connect(process_, head_->process());
  auto endpoint = stage_.links.join(process_, {self_.name, core::RunId{0}, self_.epoch});
  boost::asio::co_spawn(endpoint->strand(), start(this, endpoint), rethrow);
}

async::task<void> Node::start(Node* self, std::shared_ptr<cluster::Endpoint> endpoint) {
  cluster::RoleHost::Hooks hooks;
  hooks.failed = [self](const cluster::PeerName&, const core::Error& error) {
    self->left(error.message);
  };
  hooks.shutdown_asked = [self](const cluster::PeerName&) { self->leave("was dismissed"); };
  self->host_ = std::make_unique<cluster::RoleHost>(endpoint, std::move(hooks));
  auto factory = actors::factory_of<actors::node::NodeRole>([self](actors::RoleContext context) {
    self->context_ = context;
    self->maker_.ask_with(context);
    self->role_ =
        std::make_shared<actors::node::NodeRole>(std::move(context), self->join(), self->ports());
    return self->role_;
  });
  auto started = co_await self->host_->start(std::move(factory));
  TROUPE_CHECK(started.has_value(), "a node's role starts");
  self->introduce(endpoint->identity(), self->self_.pass);
  self->role_->begin();
  --self->starting_;
}

// The head hears of it over the connection, and says no or nothing.
void Node::introduce(const cluster::Identity& identity, std::string pass) {
  const wire::Hello hello{identity.self, identity.run, identity.epoch, std::move(pass),
                          identity.arithmetic};
  stage_.links.pass(process_, head_->process(),
                    [this, head = head_, hello] { head->introduced(*this, hello); });
}

actors::node::NodePorts Node::ports() {
  actors::node::NodePorts ports;
  ports.roles = hosted_.get();
  ports.announce = [this](const std::string& role) {
    const auto place = process_.roles().find(role);
    if (place != process_.roles().end()) introduce(place->second->identity(), "");
  };
  ports.left = [this](const core::Error& error) {
    if (error.code == core::ErrorCode::kNotFound) return leave(kOfAnotherRun);
    left(error.message);
  };
  ports.in = [this](const actors::Joined& joined) {
    crossed_ = was_in_ && joined.run_id != run_;
    in_ = was_in_ = true;
    run_ = joined.run_id;
    stage_.truth.expect(self_.run == 0 || self_.run == run_, "a guest follows another run");
    if (self_.guest()) self_.run = run_;
    heard_ = stage_.time.now();
  };
  ports.heard = [this] { heard_ = stage_.time.now(); };
  return ports;
}

void Node::bring(const std::string& role) {
  if (unwinding_ || process_.roles().contains(role)) return;
  ++starting_;
  boost::asio::co_spawn(process_.make_strand(), start_brought(this, role), rethrow);
}

async::task<void> Node::start_brought(Node* self, std::string role) {
  const cluster::Identity identity{role, core::RunId{self->run_}, self->self_.epoch};
  auto endpoint = self->stage_.links.join(self->process_, identity);
  cluster::RoleRecipe recipe = self->maker_.reward(role);
  self->brought_ = std::make_unique<cluster::RoleHost>(endpoint, cluster::RoleHost::Hooks{},
                                                       recipe.device, recipe.team);
  auto started = co_await self->brought_->start(std::move(recipe.factory));
  TROUPE_CHECK(started.has_value(), "a brought reward starts");
  self->introduce(identity, "");
  --self->starting_;
}

void Node::left(const std::string& why) {
  const bool waits = was_in_ && !self_.guest();
  if (!waits) return leave("lost its company: " + why);
  if (unwinding_ || std::exchange(waiting_, true)) return;
  in_ = false;
  boost::asio::co_spawn(process_.make_strand(), rejoin(this), rethrow);
}

// As the program's node: keeps its roles and enters the company of the next head, or ends.
async::task<void> Node::rejoin(Node* self) {
  const core::TimePoint until = self->heard_ + kHeadWait;
  co_await self->hosted_->settle();
  if (self->host_) co_await self->host_->stop();
  self->role_.reset();
  self->host_.reset();
  std::optional<Entrance> found;
  while (!self->unwinding_ && !found && self->stage_.time.now() < until) {
    found = self->calls_.find_head(*self);
    if (!found)
      co_await async::sleep_for(self->stage_.time, actors::controller::limits::kLookEvery);
  }
  self->waiting_ = false;
  if (self->unwinding_) co_return;
  if (!found) co_return self->leave("waited in vain for a head");
  self->head_ = found->head;
  self->self_.pass = found->pass;
  self->self_.epoch = found->epoch;
  self->begin();
}

void Node::leave(const std::string& how) {
  if (std::exchange(unwinding_, true)) return;
  how_ = how;
  boost::asio::co_spawn(process_.make_strand(), unwind(this), rethrow);
}

void Node::kill() {
  if (std::exchange(told_, true)) return;
  process_.kill();
  stage_.links.drop(process_);
  if (!std::exchange(unwinding_, true)) {
    boost::asio::co_spawn(process_.make_strand(), unwind(this), rethrow);
  }
  calls_.ended(*this, "was ended by signal 9 (Killed)");
}

async::task<void> Node::unwind(Node* self) {
  while (self->waiting_ || self->starting_ > 0)
    co_await async::sleep_for(self->stage_.time, std::chrono::milliseconds(10));
  if (self->brought_) co_await self->brought_->stop();
  self->brought_.reset();
  co_await self->hosted_->stop_all();
  if (self->host_) co_await self->host_->stop();
  self->role_.reset();
  self->host_.reset();
  if (!std::exchange(self->told_, true)) {
    self->process_.kill();
    self->stage_.links.drop(self->process_);
    self->calls_.ended(*self, self->how_);
  }
  self->unwound_ = true;
}

}  // namespace troupe::sim
