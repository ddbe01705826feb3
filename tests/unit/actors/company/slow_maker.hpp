// The roles of a company under test: they load for some time, meet their gang, and do nothing.
#pragma once

#include "actors/node/node_role.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/core/rng.hpp"
#include "tests/unit/actors/idle_role.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::testing {

using std::chrono::milliseconds;

// Has begun something that nobody can interrupt.
class StuckRole final : public cluster::Role {
 public:
  explicit StuckRole(async::Timers& timers) : timers_(timers) {}
  async::task<core::Result<wire::Frame>> handle(wire::Frame) override {
    co_return core::fail(core::ErrorCode::kUnsupported, "it is busy");
  }
  async::task<core::Result<void>> run() override {
    co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
    co_await async::sleep_for(timers_, std::chrono::seconds(40));
    co_return core::Result<void>();
  }

 private:
  async::Timers& timers_;
};

// What nodes answer instead of starting a role, by node and kind; and what they were asked.
struct Refusals {
  std::map<std::pair<std::string, std::string>, core::Error> why;
  std::vector<std::string> asked;              // "reference/0 at node/a"
  std::map<std::string, std::string> classes;  // of arithmetic, by node; of others "f32/v1/a"
  std::string stuck;                           // a role that does not stop
};

// What ranks of gangs were told when they met.
struct Met {
  std::string role;
  std::uint64_t epoch = 0;
  GangMet told;
};

// Loads for some time, then gives a role that does nothing.
class SlowMaker final : public node::RoleMaker {
 public:
  SlowMaker(async::Timers& timers,
            core::Rng& rng,
            std::string node,
            Refusals& refusals,
            std::vector<Met>& met)
      : timers_(timers), rng_(rng), node_(std::move(node)), refusals_(refusals), met_(met) {}
  void ask_with(const RoleContext& context) { context_ = context; }
  async::task<core::Result<cluster::RoleRecipe>> make(Spawn spawn) override {
    const core::Duration loading = milliseconds(rng_.next_below(400));
    refusals_.asked.push_back(spawn.name + " at " + node_);
    co_await async::sleep_for(timers_, loading);
    const auto refused = refusals_.why.find({node_, spawn.kind});
    if (refused != refusals_.why.end()) co_return core::fail(refused->second);
    cluster::RoleRecipe recipe;
    const auto other = refusals_.classes.find(node_);
    if (spawn.kind != "reward") {
      recipe.arithmetic = other == refusals_.classes.end() ? "f32/v1/a" : other->second;
    }
    if (spawn.ranks > 1) {
      MeetGang meet{spawn.name, spawn.epoch, recipe.arithmetic, {"host", node_, "", 0}};
      auto asked = ask(context_, "company/0", std::move(meet));
      auto met = co_await std::move(asked);
      if (!met) co_return met.failure();
      met_.push_back({spawn.name, spawn.epoch, std::move(*met)});
    }
    const bool stuck = spawn.name == refusals_.stuck;
    recipe.factory =
        [stuck](
            const cluster::RoleServices& services) -> core::Result<std::unique_ptr<cluster::Role>> {
      std::unique_ptr<cluster::Role> role = std::make_unique<IdleRole>();
      if (stuck) role = std::make_unique<StuckRole>(services.timers);
      return role;
    };
    co_return recipe;
  }

 private:
  async::Timers& timers_;
  core::Rng& rng_;
  const std::string node_;
  Refusals& refusals_;
  std::vector<Met>& met_;
  RoleContext context_;  // of the node's role
};

}  // namespace troupe::actors::testing
