// A company and a node over CAF, each with an exchange of its own: a role whose actor is killed,
// and only that, is started again with a higher epoch.
#include "actors/company/company.hpp"
#include "actors/node/node_role.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "tests/unit/actors/company/over_caf.hpp"
#include "tests/unit/actors/idle_role.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace troupe::actors::company {
namespace {

using testing::Events;
using testing::NoProcesses;

class StandingMaker final : public node::RoleMaker {
 public:
  async::task<core::Result<cluster::RoleRecipe>> make(Spawn) override {
    cluster::RoleRecipe recipe;
    recipe.factory =
        [](const cluster::RoleServices&) -> core::Result<std::unique_ptr<cluster::Role>> {
      return std::unique_ptr<cluster::Role>(std::make_unique<testing::IdleRole>());
    };
    co_return recipe;
  }
};

async::task<void> start_host(cluster::RoleHost* host,
                             cluster::RoleHost::Factory factory,
                             core::Result<void>* out) {
  *out = co_await host->start(std::move(factory));
}
async::task<void> stop_host(cluster::RoleHost* host) {
  co_await host->stop();
}
async::task<void> stop_node(node::HostedRoles* roles, cluster::RoleHost* host) {
  co_await roles->stop_all();
  co_await host->stop();
}
async::task<void> look(std::shared_ptr<Company> company, CompanyView* out) {
  *out = company->view();
  co_return;
}
async::task<void> look_there(std::shared_ptr<Company> company,
                             async::Executor strand,
                             CompanyView* out) {
  co_await async::run_on(std::move(strand), look(std::move(company), out));
}

std::unique_ptr<cluster::Exchange> exchange_of(cluster::Exchange::Hooks hooks,
                                               async::Timers& timers) {
  auto made = cluster::Exchange::create(std::move(hooks), timers);
  EXPECT_TRUE(made);
  return std::move(*made);
}

class Told final : public CompanyPort {
 public:
  Told(Events& events, cluster::Exchange& head) : events_(events), head_(head) {}
  void role_up(const std::string& role) override { events_.add(role + " up"); }
  void role_lost(const std::string& role, const core::Error&) override {
    events_.add(role + " lost");
  }
  void note(const std::string&) override {}
  void hopeless(const core::Error& error) override { ADD_FAILURE() << error.message; }
  void fence(const std::string& name, std::uint64_t epoch, const core::Error& why) override {
    head_.forget(name, why, epoch);
  }

 private:
  Events& events_;
  cluster::Exchange& head_;
};

}  // namespace

TEST(CompanyOverCaf, ARoleWhoseActorIsKilledIsStartedAgainWithAHigherEpoch) {
  async::SteadyTimers timers;
  async::IoThreads head_io(1), node_io(1);
  Events events;
  Admission admission;
  NoProcesses launcher;
  std::shared_ptr<Company> company;
  const async::Executor strand = head_io.make_strand();

  cluster::Exchange::Hooks hooks;
  hooks.admit = [](const wire::Hello&, const std::string&) { return core::Result<void>(); };
  hooks.arrived = [&](const wire::Hello& hello, const std::string& origin) {
    async::post(strand, [&company, hello, origin] { company->on_arrived(hello, origin); });
  };
  hooks.lost = [&](const std::string& name, std::uint64_t epoch, const core::Error& cause) {
    async::post(strand, [&company, name, epoch, cause] { company->on_lost(name, epoch, cause); });
  };
  const auto head = exchange_of(std::move(hooks), timers);
  const auto node = exchange_of({}, timers);

  CompanyOptions options;
  options.run_id = 42;
  options.arithmetic = options.build = "same";
  options.roles = {{"reward", "reward/0", ""}};
  Told told(events, *head);
  auto place = head->join({"company/0", core::RunId{0}, 1}, strand);
  ASSERT_TRUE(place);
  cluster::RoleHost company_host(*place, {});
  core::Result<void> started;
  head_io.run(start_host(&company_host, factory_of<Company>([&](RoleContext context) {
    company = std::make_shared<Company>(std::move(context), options, admission, launcher, told);
    return company;
  }),
                         &started));
  ASSERT_TRUE(started);
  async::post(strand, [&company] { company->begin(); });

  StandingMaker maker;
  std::shared_ptr<node::NodeRole> role;
  node::HostedRoles::Ports hosted;
  hosted.place = [&](cluster::Identity identity) {
    return node->join(std::move(identity), node_io.make_strand());
  };
  hosted.maker = &maker;
  hosted.note = [](const std::string&) {};
  const async::Executor node_strand = node_io.make_strand();
  node::HostedRoles roles(node_strand, timers, std::move(hosted));
  node::NodePorts ports;
  ports.roles = &roles;
  std::atomic<bool> ending{false};
  ports.left = [&ending](const core::Error& error) { EXPECT_TRUE(ending) << error.message; };
  ports.in = [](const Joined&) {};
  Join self;
  self.name = "node/a";
  self.host = "here";
  self.arithmetic = self.build = "same";
  self.roles = {"reward"};
  auto node_place = node->join({"node/a", core::RunId{0}, 7}, node_strand);
  ASSERT_TRUE(node_place);
  cluster::RoleHost node_host(*node_place, {});
  node_io.run(start_host(&node_host, factory_of<node::NodeRole>([&](RoleContext context) {
    role = std::make_shared<node::NodeRole>(std::move(context), self, ports);
    return role;
  }),
                         &started));
  ASSERT_TRUE(started);
  const auto socket = head->listen();
  ASSERT_TRUE(socket);
  const wire::Hello hello{"node/a", core::RunId{0}, 7, ""};
  ASSERT_TRUE(node->connect(*socket, hello, std::chrono::seconds(10)));
  role->begin();

  ASSERT_TRUE(events.await(1));
  EXPECT_TRUE(node->kill_actor("reward/0"));
  EXPECT_TRUE(events.await(3));
  EXPECT_EQ(events.all(),
            (std::vector<std::string>{"reward/0 up", "reward/0 lost", "reward/0 up"}));
  CompanyView view;
  head_io.run(look_there(company, strand, &view));
  ASSERT_EQ(view.roles.size(), 1u);
  EXPECT_EQ(view.roles[0].epoch, 2u);
  EXPECT_EQ(view.nodes.size(), 1u) << "its process stayed";

  ending = true;
  head_io.run(stop_host(&company_host));  // before the node, whose end is no news then
  node_io.run(stop_node(&roles, &node_host));
  EXPECT_TRUE(node->close(std::chrono::seconds(10)));
  EXPECT_TRUE(head->close(std::chrono::seconds(10)));
  node_io.join();
  head_io.join();
}

}  // namespace troupe::actors::company
