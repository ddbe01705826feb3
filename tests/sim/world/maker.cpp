// One recipe a kind of role.
#include "tests/sim/world/maker.hpp"

#include "actors/company/limits.hpp"
#include "actors/critic/critic_role.hpp"
#include "actors/generator/generator_role.hpp"
#include "actors/policy/policy_role.hpp"
#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "actors/reference/reference_role.hpp"
#include "actors/reward/limits.hpp"
#include "actors/reward/reward_role.hpp"
#include "actors/supervised/supervised_role.hpp"
#include "tests/sim/world/fake_data.hpp"
#include "tests/sim/world/fake_trainers.hpp"
#include "tests/sim/world/supervised.hpp"

namespace troupe::sim {

using namespace std::chrono_literals;
using actors::RoleContext;

namespace {

constexpr core::Duration kRewardDeadline = 2s;

// A rank that works for rank 0.
class Follower final : public cluster::Role {
 public:
  async::task<core::Result<wire::Frame>> handle(wire::Frame) override {
    co_return core::fail(core::ErrorCode::kUnsupported, "a rank answers nobody");
  }
};

TrainerFacts facts_of(const WorldPlan& plan, std::string role) {
  return {std::move(role), plan.staleness_max, plan.groups, plan.critic,
          plan.reference,  plan.train,         plan.seed};
}

}  // namespace

async::task<core::Result<cluster::RoleRecipe>> Maker::make(actors::Spawn spawn) {
  const core::Duration load = stage_.plan.load + stage_.soon(50ms);
  co_await async::sleep_for(stage_.time, load);
  stage_.truth.census.count("role", "made " + spawn.kind);
  stage_.truth.made(spawn.name);
  if (spawn.ranks > 1) TROUPE_CO_TRY(co_await meet(spawn));
  if (auto error = stage_.truth.error(spawn.name, "spawn")) co_return core::fail(*error);
  if (spawn.rank > 0) co_return follower();
  if (spawn.kind == "policy" && stage_.plan.supervised()) co_return supervised(spawn);
  if (spawn.kind == "policy") co_return policy(spawn);
  if (spawn.kind == "critic") co_return critic(spawn);
  if (spawn.kind == "generator") co_return generator(spawn.name);
  if (spawn.kind == "reference") co_return reference();
  co_return reward(spawn.name);
}

// The ranks find each other as in the program: through the company.
async::task<core::Result<void>> Maker::meet(actors::Spawn spawn) {
  stage_.gangs.entered("start");
  if (stage_.gangs.is_abandoned(spawn.name, spawn.epoch))
    co_return core::fail(core::ErrorCode::kClosed, spawn.name + " is to stop");
  if (spawn.rank > 0) stage_.gangs.entered("meet");
  actors::MeetGang meet{spawn.name, spawn.epoch, "same", {process_.host(), process_.name(), "", 0}};
  const RoleContext context = context_.with_deadline(actors::company::limits::kSpawnDeadline);
  auto asked = actors::ask(context, "company/0", std::move(meet));
  auto met = co_await std::move(asked);
  if (!met) co_return met.failure();
  const bool fits = met->addresses.size() == spawn.ranks && met->key.size() == 64 &&
                    met->addresses[spawn.rank].socket == process_.name();
  stage_.truth.expect(fits, spawn.name + " is told of another gang");
  stage_.gangs.joined(spawn.name, spawn.epoch, process_);
  stage_.truth.census.count("event", "a rank has met its gang");
  co_return core::Result<void>();
}

cluster::RoleRecipe Maker::follower() {
  cluster::RoleHost::Factory factory =
      [](const cluster::RoleServices&) -> core::Result<std::unique_ptr<cluster::Role>> {
    return std::unique_ptr<cluster::Role>(std::make_unique<Follower>());
  };
  return {std::move(factory)};
}

async::DeviceQueue& Maker::device_of(const actors::Spawn& spawn) {
  cluster::sim::SimDevice& own = process_.device("compute");
  if (spawn.ranks < 2 && !stage_.plan.supervised()) return own;
  if (spawn.ranks > 1) {
    devices_.push_back(std::make_unique<GangDevice>(stage_.time, stage_.gangs, own, spawn.kind,
                                                    spawn.epoch, spawn.ranks));
  } else {
    devices_.push_back(std::make_unique<PhaseDevice>(stage_.gangs, own));
  }
  return *devices_.back();
}

cluster::RoleRecipe Maker::policy(const actors::Spawn& spawn) {
  auto factory = actors::factory_of<actors::policy::PolicyRole>([this](RoleContext context) {
    actors::policy::CriticLink critic;
    if (stage_.plan.critic) critic.peer = "critic/0";
    critic.in_turn = !stage_.plan.asynchronous();
    return std::make_shared<actors::policy::PolicyRole>(
        std::move(context),
        fake_policy_trainer(stage_.time, stage_.truth, disk_, facts_of(stage_.plan, "policy/0")),
        fake_publisher(stage_.truth, process_), "data/0", "", critic, disk_);
  });
  return {std::move(factory), &device_of(spawn), &stage_.team};
}

cluster::RoleRecipe Maker::supervised(const actors::Spawn& spawn) {
  auto factory =
      actors::factory_of<actors::supervised::SupervisedRole>([this](RoleContext context) {
        return std::make_shared<actors::supervised::SupervisedRole>(
            std::move(context),
            fake_supervised_trainer(stage_.time, stage_.truth, disk_, stage_.gangs, stage_.plan),
            "data/0", "", stage_.plan.scores, disk_);
      });
  return {std::move(factory), &device_of(spawn), &stage_.team};
}

cluster::RoleRecipe Maker::critic(const actors::Spawn& spawn) {
  auto factory = actors::factory_of<actors::critic::CriticRole>([this](RoleContext context) {
    return std::make_shared<actors::critic::CriticRole>(
        std::move(context),
        fake_critic_trainer(stage_.time, stage_.truth, disk_, facts_of(stage_.plan, "critic/0")),
        "", disk_);
  });
  return {std::move(factory), &device_of(spawn), &stage_.team};
}

cluster::RoleRecipe Maker::generator(const std::string& role) {
  auto factory =
      actors::factory_of<actors::generator::GeneratorRole>([this, role](RoleContext context) {
        WeightWays ways{&stage_.links, stage_.process};
        EngineFacts facts{role, stage_.plan.token};
        auto text = std::shared_ptr<const engine::TokenText>(&stage_.text, [](auto*) {});
        return std::make_shared<actors::generator::GeneratorRole>(
            std::move(context),
            fake_engines(stage_.time, stage_.truth, facts, stage_.text, stage_.team), text,
            fake_subscriber(stage_.time, stage_.truth, process_, role, ways),
            process_.device("weights of " + role), "data/0");
      });
  return {std::move(factory), &process_.device("compute"), &stage_.team};
}

cluster::RoleRecipe Maker::reference() {
  auto factory = actors::factory_of<actors::reference::ReferenceRole>([](RoleContext context) {
    return std::make_shared<actors::reference::ReferenceRole>(std::move(context), weights_of(0),
                                                              512);
  });
  return {std::move(factory), &process_.device("compute"), &stage_.team};
}

cluster::RoleRecipe Maker::reward(const std::string& role) {
  auto factory = actors::factory_of<actors::reward::RewardRole>([this, role](RoleContext context) {
    return std::make_shared<actors::reward::RewardRole>(
        std::move(context), fake_reward(stage_.time, stage_.truth, role, stage_.plan.score),
        kRewardDeadline);
  });
  return {std::move(factory), &process_.device("reward"), nullptr};
}

}  // namespace troupe::sim
