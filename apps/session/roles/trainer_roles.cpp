#include "apps/session/roles/trainer_roles.hpp"

#include "actors/critic/critic_role.hpp"
#include "actors/gang/leading_trainers.hpp"
#include "actors/policy/policy_role.hpp"
#include "actors/policy/python_advantage.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "actors/supervised/supervised_role.hpp"
#include "apps/cli/words.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/supervised_model.hpp"
#include "apps/session/roles/teachers.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/weights/shared_publisher.hpp"

#include <charconv>

namespace troupe::session {
namespace {

using actors::RoleContext;
using cluster::RoleRecipe;

Result<std::uint64_t> number_setting(const actors::Spawn& spawn, const std::string& name) {
  for (const auto& [key, value] : spawn.settings) {
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
    if (key == name && parsed.ec == std::errc()) return number;
  }
  return core::fail(ErrorCode::kData, "the start of " + spawn.name + " lacks the setting " + name);
}

std::shared_ptr<actors::gang::GangLink> link_of(std::shared_ptr<collective::Collectives> gang) {
  return std::make_shared<actors::gang::CollectiveLink>(std::move(gang));
}

learn::Ranks ranks_of(const std::shared_ptr<collective::Collectives>& gang,
                      const config::TrainConfig& config) {
  return {gang.get(), static_cast<int>(config.train.zero_stage)};
}

// The source of a user's own advantages; null without one.
Result<std::shared_ptr<learn::AdvantageSource>> make_advantage(const config::TrainConfig& config) {
  if (config.algo.advantage_file.empty()) return std::shared_ptr<learn::AdvantageSource>();
  actors::policy::AdvantageOptions options;
  options.take(config.algo);
  options.seed = seed_of(config);
  options.has_reference = has_reference(config);
  options.has_teacher = has_teacher(config);
  options.has_critic = has_critic(config);
  options.note = &cli::warn;
  return actors::policy::make_python_advantage(std::move(options));
}

}  // namespace

Result<std::shared_ptr<collective::Collectives>> TrainerRoles::gang_of(const RoleOrder& order,
                                                                       core::TeamRunner& team) {
  if (order.spawn.ranks < 2) return std::shared_ptr<collective::Collectives>();
  return gangs_.join(order.spawn, threads_.class_of(order, team),
                     order.config.cluster.trusted_network,
                     link_of_rank(order.spawn, order.config, team));
}

RoleRecipe TrainerRoles::follower(actors::gang::Obey obey,
                                  std::shared_ptr<collective::Collectives> gang,
                                  core::TeamRunner* team) {
  cluster::RoleHost::Factory factory =
      [link = link_of(std::move(gang)), obey = std::move(obey)](
          const cluster::RoleServices& services) mutable -> Result<std::unique_ptr<cluster::Role>> {
    return std::unique_ptr<cluster::Role>(std::make_unique<actors::gang::FollowerRole>(
        actors::context_of(services), std::move(obey), std::move(link), &cli::warn));
  };
  return RoleRecipe{std::move(factory), &threads_.compute(), team};
}

Result<RoleRecipe> TrainerRoles::policy(const RoleOrder& order) {
  const config::TrainConfig& config = order.config;
  if (config.method != config::kPpo) return supervised(order);
  TROUPE_TRY_ASSIGN(team, threads_.team_of(order));
  TROUPE_TRY_ASSIGN(updates, number_setting(order.spawn, "updates"));
  TROUPE_TRY_ASSIGN(folder, trained_folder(config));
  TROUPE_TRY_ASSIGN(settings, policy_settings(config, updates, folder));
  if (order.spawn.rank == 0) {
    TROUPE_TRY_SET(settings.advantage, make_advantage(config));
  }
  const auto read = elements_to_read(order.spawn, config, settings.optim, *team);
  auto params = std::move(shared_.params);
  if (!params) {
    TROUPE_TRY_SET(params, model::load_elements(folder, model::HeadKind::kLanguage, 0, read));
  }
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(gang, gang_of(order, *team));
  settings.optim.ranks = ranks_of(gang, config);
  TROUPE_TRY_ASSIGN(trainer, trainers->policy(std::move(params), std::move(settings), *team));
  weights::PublisherOptions publishing;
  publishing.image = forward_dtype(config);
  publishing.gang = gang.get();
  auto publisher = shared_.publisher;
  if (gang) {  // each rank publishes a share
    TROUPE_TRY_ASSIGN(own, weights::SharedWeightPublisher::create(publishing, *team));
    if (order.spawn.rank > 0)
      return follower(actors::gang::obeying(std::move(trainer), std::move(own)), std::move(gang),
                      team);
    const auto link = link_of(std::move(gang));
    trainer = actors::gang::leading_policy(std::move(trainer), link);
    publisher = actors::gang::leading_publisher(std::move(own), link);
  } else if (!publisher) {
    TROUPE_TRY_SET(publisher, weights::SharedWeightPublisher::create(publishing, *team));
  } else if (has_reference(config) && config.ref.model_name_or_path.empty()) {
    TROUPE_TRY_ASSIGN(other, threads_.team_of(order, "reference"));
    if (other == team) first_weights_ = trainer->packed();
  }
  auto factory = actors::factory_of<actors::policy::PolicyRole>(
      [trainer = std::move(trainer), publisher, folder,
       critic = critic_link(config)](RoleContext context) mutable {
        return std::make_shared<actors::policy::PolicyRole>(std::move(context), std::move(trainer),
                                                            publisher, "data/0", folder, critic);
      });
  return RoleRecipe{std::move(factory), &threads_.compute(), team};
}

// The policy of a supervised method.
Result<RoleRecipe> TrainerRoles::supervised(const RoleOrder& order) {
  const config::TrainConfig& config = order.config;
  TROUPE_TRY_ASSIGN(team, threads_.team_of(order));
  TROUPE_TRY_ASSIGN(steps, number_setting(order.spawn, "updates"));
  TROUPE_TRY_ASSIGN(folder, trained_folder(config));
  const auto read = elements_to_read(order.spawn, config, optim_settings(config), *team);
  auto params = std::move(shared_.params);
  if (!params) {
    TROUPE_TRY_SET(params, supervised_params(config, read));
  }
  const bool scores = params->spec().head == model::HeadKind::kScore;
  TROUPE_TRY_ASSIGN(gang, gang_of(order, *team));
  TROUPE_TRY_ASSIGN(
      trainer, make_supervised(config, steps, std::move(params), *team, ranks_of(gang, config)));
  if (order.spawn.rank > 0)
    return follower(actors::gang::obeying(std::move(trainer)), std::move(gang), team);
  if (gang)
    trainer = actors::gang::leading_supervised(std::move(trainer), link_of(std::move(gang)));
  auto factory = actors::factory_of<actors::supervised::SupervisedRole>(
      [trainer = std::move(trainer), folder, scores](RoleContext context) mutable {
        return std::make_shared<actors::supervised::SupervisedRole>(
            std::move(context), std::move(trainer), "data/0", folder, scores);
      });
  return RoleRecipe{std::move(factory), &threads_.compute(), team};
}

Result<RoleRecipe> TrainerRoles::critic(const RoleOrder& order) {
  TROUPE_TRY_ASSIGN(team, threads_.team_of(order));
  TROUPE_TRY_ASSIGN(updates, number_setting(order.spawn, "updates"));
  TROUPE_TRY_ASSIGN(gang, gang_of(order, *team));
  const auto read = elements_to_read(order.spawn, order.config, {}, *team);
  TROUPE_TRY_ASSIGN(made,
                    make_critic(order.config, updates, *team, ranks_of(gang, order.config), read));
  if (order.spawn.rank > 0)
    return follower(actors::gang::obeying(std::move(made.trainer)), std::move(gang), team);
  if (gang)
    made.trainer = actors::gang::leading_critic(std::move(made.trainer), link_of(std::move(gang)));
  auto factory = actors::factory_of<actors::critic::CriticRole>(
      [made = std::move(made)](RoleContext context) mutable {
        return std::make_shared<actors::critic::CriticRole>(std::move(context),
                                                            std::move(made.trainer), made.folder);
      });
  return RoleRecipe{std::move(factory), &threads_.compute(), team};
}

}  // namespace troupe::session
