// Makes every role that computes or scores: loads what its kind needs and assigns its device and
// threads. Each node process has one, and so has a run in one process; it owns the threads and
// teams of its roles and outlives them. It loads on the compute thread, so that a node's heartbeats
// go on meanwhile.
#pragma once

#include "actors/gang/follower_role.hpp"
#include "actors/generator/tokenizer_text.hpp"
#include "actors/node/node_role.hpp"
#include "actors/reward/reward_calls.hpp"
#include "apps/cli/placement.hpp"
#include "apps/session/roles/fault_plan.hpp"
#include "apps/session/roles/gang_ranks.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/guide/guide_maker.hpp"
#include "runtime/model/params.hpp"
#include "runtime/weights/relay.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace troupe::app {

// What the roles of a run in one process share.
struct OneProcess {
  std::optional<config::TrainConfig> config;    // in place of what a Spawn carries
  std::unique_ptr<model::ParamStore> params;    // of the policy, loaded already
  std::unique_ptr<actors::RewardCalls> reward;  // the rule, file or servers; null without
  std::shared_ptr<weights::WeightPublisher> publisher;
  std::shared_ptr<weights::WeightSubscriber> subscriber;
  bool generator_threads = false;  // each generator has a thread of its own beside the trainer's
};

class RoleLoader final : public actors::RoleMaker {
 public:
  // Turns a subscriber into one that reaches a trainer on another host; null: no change.
  using Reach = std::function<std::shared_ptr<weights::WeightSubscriber>(
      std::shared_ptr<weights::WeightSubscriber>)>;
  // `meet`: asks the company where the other ranks of a gang are; null: no role here has any.
  // `relays`: how the generators pass weights on to other hosts, and get them from there.
  // `gateway`: by which ranks reach those of other hosts; none on the head's own host.
  explicit RoleLoader(Reach reach = nullptr,
                      actors::AskToMeet meet = nullptr,
                      weights::RelayOptions relays = {},
                      std::optional<collective::GatewayWay> gateway = {});
  explicit RoleLoader(OneProcess shared);
  ~RoleLoader() override;

  // An environment of this node's own: the keys of `env` that say what it is replace the run's.
  void bring_environment(config::TrainConfig own) { own_environment_ = std::move(own); }

  async::task<core::Result<cluster::RoleRecipe>> make(actors::Spawn spawn) override;
  std::string wedged() const override;
  void abandon(const std::string& role, std::uint64_t epoch) override {
    gangs_.abandon(role, epoch);
  }
  void abandon_starts() override { gangs_.abandon_starts(); }

 private:
  using Recipe = core::Result<cluster::RoleRecipe>;
  struct Order;  // a role to make
  Recipe load(const actors::Spawn& spawn);
  Recipe load_kind(const Order& order);
  Recipe load_policy(const Order& order);
  Recipe load_supervised(const Order& order);
  Recipe load_generator(const Order& order);
  Recipe load_reference(const Order& order);
  Recipe load_teacher(const Order& order);
  Recipe frozen_role(const Order& order,
                     std::shared_ptr<const model::PackedWeights> frozen,
                     core::TeamRunner* team);
  Recipe load_critic(const Order& order);
  Recipe load_reward(const Order& order);
  Recipe load_environment(const Order& order);
  // The team for a role of that kind: on a GPU one of `teams`, those of the role's thread. All
  // roles on the CPU share one team.
  core::Result<core::TeamRunner*> team_of(const Order& order,
                                          const std::string& kind,
                                          Teams& teams);
  core::Result<core::TeamRunner*> team_of(const Order& order);
  // The class that a policy, generator or reference computes in; "" of other roles.
  std::string arithmetic_of(const Order& order, core::TeamRunner* team);
  std::string class_of(const Order& order, core::TeamRunner& team);
  // The recipe of a rank that is not rank 0 of its gang.
  Recipe follower(actors::Obey obey,
                  std::shared_ptr<collective::Collectives> gang,
                  core::TeamRunner* team);
  core::Result<void> load_text(const std::filesystem::path& folder, const model::ModelSpec& spec);
  async::DeviceThread& thread_of(const std::string& name, void (*begin)() = nullptr);

  // The gang of a role that is one of several ranks, connected; null for a role that is alone.
  core::Result<std::shared_ptr<collective::Collectives>> gang_of(const Order& order,
                                                                 core::TeamRunner& team);

  Reach reach_;
  const weights::RelayOptions relays_;
  GangRanks gangs_;
  std::atomic<std::int64_t> job_limit_s_{0};                   // of the configuration; 0: none
  OneProcess shared_;                                          // empty in a node's process
  std::optional<config::TrainConfig> own_environment_;         // its `env`
  std::unique_ptr<FaultPlan> faults_;                          // of the generators; null: none
  std::shared_ptr<const model::PackedWeights> first_weights_;  // for a reference in this process
  std::shared_ptr<actors::TokenizerText> text_;                // of all generators
  std::shared_ptr<guide::GuideMaker> guides_;                  // the same
  std::vector<std::int32_t> eos_;
  std::map<std::string, std::string> arithmetic_;  // by device and dtype
  Teams teams_;  // of `compute_`; made when the first role computes
  std::map<std::string, Teams> generator_teams_;  // of generators with threads of their own
  async::DeviceThread compute_;
  async::DeviceThread blocking_;  // rules score here; workers start and end
  // Threads where generators wait for weights, or compute if they have threads of their own.
  std::map<std::string, std::unique_ptr<async::DeviceThread>> threads_;
};

// Makes the role of a reward that is already loaded.
cluster::RoleHost::Factory reward_factory(std::unique_ptr<actors::RewardCalls> calls,
                                          core::Duration deadline);

}  // namespace troupe::app
