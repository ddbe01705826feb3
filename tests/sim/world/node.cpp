// Beginning and end of a node.
#include "tests/sim/world/node.hpp"

#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/core/check.hpp"
#include "tests/sim/world/head.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace troupe::sim {

namespace {

void rethrow(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

}  // namespace

Node::Node(Stage& stage, Self self, std::uint64_t number, Head& head, Ended ended)
    : stage_(stage),
      self_(std::move(self)),
      process_(stage.time, self_.name, self_.host, number),
      head_(head),
      ended_(std::move(ended)),
      maker_(stage, process_) {}

Node::~Node() = default;

actors::Join Node::join() const {
  actors::Join join;
  join.name = self_.name;
  join.host = join.host_id = self_.host;
  join.cores = 2;
  join.arithmetic = join.build = "same";
  join.roles = self_.kinds;
  return join;
}

void Node::begin() {
  stage_.links.connect(process_, head_.process());
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
  auto factory = actors::factory_of<actors::NodeRole>([self](actors::RoleContext context) {
    self->context_ = context;
    self->role_ =
        std::make_shared<actors::NodeRole>(std::move(context), self->join(), self->ports());
    return self->role_;
  });
  auto started = co_await self->host_->start(std::move(factory));
  TROUPE_CHECK(started.has_value(), "a node's role starts");
  self->introduce(endpoint->identity(), self->self_.pass);
  self->role_->begin();
}

// The head hears of it over the connection, and says no or nothing.
void Node::introduce(const cluster::Identity& identity, std::string pass) {
  const wire::Hello hello{identity.self, identity.run, identity.epoch, std::move(pass)};
  stage_.links.pass(process_, head_.process(), [this, hello] { head_.introduced(*this, hello); });
}

actors::NodePorts Node::ports() {
  actors::NodePorts ports;
  ports.place =
      [this](cluster::Identity identity) -> core::Result<std::shared_ptr<cluster::Endpoint>> {
    auto endpoint = stage_.links.join(process_, identity);
    introduce(identity, "");
    return endpoint;
  };
  ports.maker = &maker_;
  ports.left = [this](const core::Error& error) { left(error.message); };
  ports.in = [this] { in_ = true; };
  ports.note = [this](const std::string& text) { stage_.note(self_.name + ": " + text); };
  return ports;
}

void Node::bring(const std::string& role) {
  if (process_.roles().contains(role)) return;
  boost::asio::co_spawn(process_.make_strand(), start_brought(this, role), rethrow);
}

async::task<void> Node::start_brought(Node* self, std::string role) {
  const cluster::Identity identity{role, core::RunId{kRun}, self->self_.epoch};
  auto endpoint = self->stage_.links.join(self->process_, identity);
  cluster::RoleRecipe recipe = self->maker_.reward(role);
  self->brought_ = std::make_unique<cluster::RoleHost>(endpoint, cluster::RoleHost::Hooks{},
                                                       recipe.device, recipe.team);
  auto started = co_await self->brought_->start(std::move(recipe.factory));
  TROUPE_CHECK(started.has_value(), "a brought reward starts");
  self->introduce(identity, "");
}

void Node::left(const std::string& why) {
  leave("lost its company: " + why);
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
  ended_(*this, "was ended by signal 9 (Killed)");
}

async::task<void> Node::unwind(Node* self) {
  if (self->brought_) co_await self->brought_->stop();
  self->brought_.reset();
  if (self->role_) co_await self->role_->stop_roles();
  if (self->host_) co_await self->host_->stop();
  self->role_.reset();
  self->host_.reset();
  if (!std::exchange(self->told_, true)) {
    self->process_.kill();
    self->stage_.links.drop(self->process_);
    self->ended_(*self, self->how_);
  }
  self->unwound_ = true;
}

}  // namespace troupe::sim
