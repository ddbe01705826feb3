// From what a role needs to the factory its host starts: one function a kind, used by the company
// in one process and by node processes alike. Pure wiring; the factories are called once.
#pragma once

#include "actors/controller/controller.hpp"
#include "actors/critic/critic_role.hpp"
#include "actors/data/data_role.hpp"
#include "actors/generator/generator_role.hpp"
#include "actors/policy/policy_role.hpp"
#include "actors/reference/reference_role.hpp"
#include "actors/reward/reward_role.hpp"
#include "runtime/cluster/role_host.hpp"
#include "runtime/config/train_config.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::app {

using Factory = cluster::RoleHost::Factory;

Factory policy_factory(std::unique_ptr<learn::PolicyTrainer> trainer,
                       std::shared_ptr<weights::WeightPublisher> publisher,
                       std::filesystem::path model_folder,
                       actors::CriticLink critic);

Factory critic_factory(std::unique_ptr<learn::CriticTrainer> trainer,
                       std::filesystem::path model_folder);

Factory generator_factory(actors::EngineMaker maker,
                          std::shared_ptr<const engine::TokenText> text,
                          std::shared_ptr<weights::WeightSubscriber> subscriber,
                          async::DeviceThread& fetch_thread,
                          bool sleep_idle);

// `team` outlives the role.
Factory reference_factory(std::shared_ptr<const model::PackedWeights> weights,
                          core::TeamRunner& team,
                          std::int64_t micro_rows_max);

Factory reward_factory(std::unique_ptr<actors::RewardSource> source, core::Duration deadline);

struct DataParts {
  actors::DataRoleOptions options;
  std::unique_ptr<actors::PromptSource> prompts;
  std::unique_ptr<actors::PromptSource> evaluation;  // null without held-out prompts
  std::unique_ptr<actors::GroupSink> sink;
};
Factory data_factory(DataParts parts);

// `made` is called with the controller once it exists; `ended` with the outcome of its run. Both on
// the controller's strand. `checkpoint`: a folder to load first, or "".
struct ControllerParts {
  actors::RunPlan plan;
  actors::CompanyPeers peers;
  std::string checkpoint;
  actors::RunListener* listener = nullptr;
  std::function<void(actors::Controller&, async::Executor)> made;
  std::function<void(core::Result<void>)> ended;
};
Factory controller_factory(ControllerParts parts);

// Where the policy finds its critic, and whether the two learn one after the other.
actors::CriticLink critic_link(const config::TrainConfig& config);

// What the configuration says of the data role.
actors::DataRoleOptions data_options(const config::TrainConfig& config);

}  // namespace troupe::app
