// Loading of models and rewards for the roles of a process.
#include "apps/session/roles/role_workshop.hpp"

#include "actors/generator/tokenizer_text.hpp"
#include "actors/reward/http_reward.hpp"
#include "actors/reward/python_reward.hpp"
#include "actors/reward/rule_reward.hpp"
#include "apps/cli/end_tokens.hpp"
#include "apps/session/roles/contents.hpp"
#include "apps/session/roles/engine_settings.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/policy_settings.hpp"
#include "apps/session/roles/role_devices.hpp"
#include "apps/session/roles/role_factories.hpp"
#include "apps/session/roles/run_table.hpp"
#include "kernels/ops.hpp"
#include "runtime/config/read.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/weights/remote_subscriber.hpp"
#include "runtime/weights/shared_publisher.hpp"

#include <charconv>
#include <cstdio>

namespace troupe::app {
namespace {

using core::ErrorCode;
using core::Result;

Result<config::TrainConfig> config_of(const actors::Spawn& spawn) {
  TROUPE_TRY_ASSIGN(texts, config::read_yaml(spawn.config, "the run's configuration"));
  config::Builder builder(run_table());
  TROUPE_TRY(builder.set_all(texts));
  return builder.finish();
}

Result<std::uint64_t> number_setting(const actors::Spawn& spawn, const std::string& name) {
  for (const auto& [key, value] : spawn.settings) {
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
    if (key == name && parsed.ec == std::errc()) return number;
  }
  return core::fail(ErrorCode::kData, "a start of " + spawn.name + " without the setting " + name);
}

// Refuses to play with files other than the run's.
Result<void> check_contents(const Hashing& hashing, const Hashes& theirs) {
  const auto& ours = hashing.get();
  if (!ours) return ours.failure();
  for (const ContentDifference& one : differences(hashing.contents(), theirs, *ours)) {
    const std::string text = "the SHA-256 of " + one.name + " (" + one.place.string() + ") is " +
                             one.ours + "... here and " + one.theirs + "... where the run is";
    if (!one.only_warns) {
      return core::fail(ErrorCode::kConfig, text + "; copy what the run has");
    }
    std::fprintf(stderr, "warning: %s\n", text.c_str());
  }
  return {};
}

}  // namespace

RoleWorkshop::RoleWorkshop(Reach reach)
    : reach_(std::move(reach)),
      compute_("compute", &kernels::flush_denormals),
      blocking_("reward"),
      fetch_("weights") {}

RoleWorkshop::~RoleWorkshop() {
  compute_.close();
  blocking_.close();
  fetch_.close();
}

async::task<Result<actors::RoleRecipe>> RoleWorkshop::make(actors::Spawn spawn) {
  auto job = [this, spawn]() { return load(spawn); };
  auto recipe = co_await compute_.run(std::move(job));
  co_return recipe;
}

Result<core::TeamRunner*> RoleWorkshop::team_of(const config::TrainConfig& config,
                                                const actors::Spawn& spawn) {
  const RoleDevice device = device_of(config, spawn.kind);
  return teams_.get(device.text(), {device.device, spawn.threads});
}

// Hashes what the role reads while it is loaded.
Result<actors::RoleRecipe> RoleWorkshop::load(const actors::Spawn& spawn) {
  TROUPE_TRY_ASSIGN(config, config_of(spawn));
  const Hashes theirs = hashes_of_settings(spawn.settings);
  std::vector<Content> contents;
  if (!theirs.empty()) {
    TROUPE_TRY_ASSIGN(read, contents_of_role(config, spawn.kind, spawn.name));
    contents = std::move(read);
  }
  const Hashing hashing(std::move(contents));
  auto recipe = load_kind(config, spawn);
  if (recipe && !theirs.empty()) TROUPE_TRY(check_contents(hashing, theirs));
  return recipe;
}

Result<actors::RoleRecipe> RoleWorkshop::load_kind(const config::TrainConfig& config,
                                                   const actors::Spawn& spawn) {
  if (spawn.kind == "reward") return load_reward(config, spawn);
  TROUPE_TRY_ASSIGN(team, team_of(config, spawn));
  if (spawn.kind == "policy") return load_policy(config, spawn, *team);
  if (spawn.kind == "critic") return load_critic(config, spawn, *team);
  if (spawn.kind == "generator") return load_generator(config, spawn, *team);
  if (spawn.kind == "reference") return load_reference(config, *team);
  return core::fail(ErrorCode::kUnsupported, "this node cannot play a role of kind " + spawn.kind);
}

RoleWorkshop::Recipe RoleWorkshop::load_policy(const config::TrainConfig& config,
                                               const actors::Spawn& spawn,
                                               core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(updates, number_setting(spawn, "updates"));
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(config.actor.model_name_or_path));
  TROUPE_TRY_ASSIGN(params, model::load_model(folder));
  TROUPE_TRY_ASSIGN(settings, policy_settings(config, updates, folder));
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(trainer, trainers->policy(std::move(params), std::move(settings), team));
  TROUPE_TRY_ASSIGN(publisher, weights::SharedWeightPublisher::create({}, team));
  return actors::RoleRecipe{
      policy_factory(std::move(trainer), std::move(publisher), folder, critic_link(config)),
      &compute_, &team};
}

RoleWorkshop::Recipe RoleWorkshop::load_critic(const config::TrainConfig& config,
                                               const actors::Spawn& spawn,
                                               core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(updates, number_setting(spawn, "updates"));
  TROUPE_TRY_ASSIGN(made, make_critic(config, updates, team));
  return actors::RoleRecipe{critic_factory(std::move(made.trainer), made.folder), &compute_, &team};
}

RoleWorkshop::Recipe RoleWorkshop::load_generator(const config::TrainConfig& config,
                                                  const actors::Spawn& spawn,
                                                  core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(config.actor.model_name_or_path));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  const std::vector<std::int32_t> eos = end_tokens(tokenizer, spec);
  auto text = std::make_shared<actors::TokenizerText>(std::move(tokenizer));
  // No weights are read here: they come from the policy.
  actors::EngineMaker maker = [limits = engine_limits(config), eos, text,
                               &team](std::shared_ptr<const model::PackedWeights> first) {
    return engine::Engine::create(std::move(first), limits, eos, text.get(), team);
  };
  std::shared_ptr<weights::WeightSubscriber> subscriber =
      std::make_shared<weights::RemoteWeightSubscriber>(spec, forward_dtype(config),
                                                        weights::own_host_id(), team.memory());
  if (reach_) subscriber = reach_(std::move(subscriber));
  if (faults_ == nullptr) {
    TROUPE_TRY_ASSIGN(plan, FaultPlan::from_environment());
    faults_ = std::move(plan);
  }
  if (faults_ != nullptr) {
    maker = faults_->around(spawn.name, std::move(maker));
    subscriber = faults_->around(spawn.name, std::move(subscriber));
  }
  return actors::RoleRecipe{
      generator_factory(std::move(maker), std::move(text), std::move(subscriber), fetch_,
                        config.rollout.enable_sleep),
      &compute_, &team};
}

RoleWorkshop::Recipe RoleWorkshop::load_reference(const config::TrainConfig& config,
                                                  core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(packed, reference_weights(config, team));
  return actors::RoleRecipe{
      reference_factory(std::move(packed), team, config.train.micro_tokens_max), &compute_, &team};
}

RoleWorkshop::Recipe RoleWorkshop::load_reward(const config::TrainConfig& config,
                                               const actors::Spawn& spawn) {
  const auto deadline = std::chrono::duration_cast<core::Duration>(
      std::chrono::duration<double>(config.reward.deadline_s));
  for (const RewardPart& part : reward_parts(config)) {
    if (part.role != spawn.name) continue;
    if (part.folder.empty()) {
      TROUPE_TRY_ASSIGN(source, make_reward(config));
      return actors::RoleRecipe{reward_factory(std::move(source), deadline), &blocking_, nullptr};
    }
    TROUPE_TRY_ASSIGN(team, team_of(config, spawn));
    TROUPE_TRY_ASSIGN(source, make_model_reward(config, part.folder, *team));
    return actors::RoleRecipe{reward_factory(std::move(source), deadline), &compute_, team};
  }
  return core::fail(ErrorCode::kUnsupported, "the run's configuration has no " + spawn.name);
}

core::Result<std::unique_ptr<actors::RewardSource>> make_reward(const config::TrainConfig& config) {
  if (!config.reward.http.empty()) return actors::make_http_reward(config.reward.http);
  if (!config.reward.python.empty()) {
    actors::PythonRewardOptions options;
    options.file = config.reward.python;
    return actors::make_python_reward(std::move(options));
  }
  const auto kind = actors::rule_kind(config.reward.rule);
  TROUPE_CHECK(kind.has_value(), "the configuration table knows the rules");
  return actors::make_rule_reward(*kind, config.reward.rule_pattern);
}

}  // namespace troupe::app
