#include "apps/session/roles/scorer_roles.hpp"

#include "actors/protocol/role_adapter.hpp"
#include "actors/reference/reference_role.hpp"
#include "actors/reference/teacher_server.hpp"
#include "actors/reward/queued_reward.hpp"
#include "actors/reward/reward_role.hpp"
#include "apps/session/roles/make_reward.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/teachers.hpp"

namespace troupe::session {
namespace {

using actors::RoleContext;
using cluster::RoleRecipe;

// A role that gives log-probs under weights that stay as they are.
RoleRecipe frozen_role(const RoleOrder& order,
                       std::shared_ptr<const model::PackedWeights> frozen,
                       core::TeamRunner* team,
                       RoleThreads& threads) {
  auto factory = actors::factory_of<actors::reference::ReferenceRole>(
      [frozen, rows_max = order.config.train.micro_tokens_max](RoleContext context) {
        return std::make_shared<actors::reference::ReferenceRole>(std::move(context), frozen,
                                                                  rows_max);
      });
  return RoleRecipe{std::move(factory), &threads.compute(), team};
}

}  // namespace

Result<RoleRecipe> reference_recipe(const RoleOrder& order,
                                    RoleThreads& threads,
                                    std::shared_ptr<const model::PackedWeights> first) {
  TROUPE_TRY_ASSIGN(team, threads.team_of(order));
  if (!first) {
    TROUPE_TRY_SET(first, reference_weights(order.config, *team));
  }
  return frozen_role(order, std::move(first), team, threads);
}

Result<RoleRecipe> teacher_recipe(const RoleOrder& order, RoleThreads& threads) {
  const config::TrainConfig& config = order.config;
  for (const TeacherPart& part : teacher_parts(config)) {
    if (part.role != order.spawn.name) continue;
    if (part.url.empty()) {
      TROUPE_TRY_ASSIGN(team, threads.team_of(order));
      TROUPE_TRY_ASSIGN(frozen, teacher_weights(config, part.folder, *team));
      return frozen_role(order, std::move(frozen), team, threads);
    }
    TROUPE_TRY_ASSIGN(spelling, token_spelling(config));
    actors::reference::TeacherServerOptions options{
        part.url, config::Seconds(config.reward.deadline_s), spelling};
    auto factory = actors::factory_of<actors::reference::TeacherServer>(
        [options = std::move(options)](RoleContext context) {
          return std::make_shared<actors::reference::TeacherServer>(std::move(context), options);
        });
    return RoleRecipe{std::move(factory), &threads.blocking(), nullptr};
  }
  return core::fail(ErrorCode::kUnsupported, "the run's configuration has no " + order.spawn.name);
}

Result<RoleRecipe> reward_recipe(const RoleOrder& order, RoleThreads& threads, OneProcess& shared) {
  const config::TrainConfig& config = order.config;
  const core::Duration deadline = config::Seconds(config.reward.deadline_s);
  for (const RewardPart& part : reward_parts(config)) {
    if (part.role != order.spawn.name) continue;
    const config::TrainConfig own = config_of(config, part);
    if (part.kind == RewardPart::Kind::kJudge) {
      TROUPE_TRY_ASSIGN(judge, make_judge(own));
      return RoleRecipe{reward_factory(std::move(judge), deadline), &threads.blocking(), nullptr};
    }
    if (part.kind == RewardPart::Kind::kSource) {
      auto source = part.role == "reward/0" ? std::move(shared.reward) : nullptr;
      if (!source) {
        TROUPE_TRY_SET(source, make_reward(own));
      }
      return RoleRecipe{reward_factory(std::move(source), deadline), &threads.blocking(), nullptr};
    }
    TROUPE_TRY_ASSIGN(team, threads.team_of(order));
    TROUPE_TRY_ASSIGN(source, part.kind == RewardPart::Kind::kProcess
                                  ? make_process_reward(own, *team)
                                  : make_model_reward(own, part.folder, *team));
    auto queued = actors::reward::make_queued_reward(std::move(source));
    return RoleRecipe{reward_factory(std::move(queued), deadline), &threads.compute(), team};
  }
  return core::fail(ErrorCode::kUnsupported, "the run's configuration has no " + order.spawn.name);
}

cluster::RoleHost::Factory reward_factory(std::unique_ptr<actors::reward::RewardCalls> calls,
                                          core::Duration deadline) {
  return actors::factory_of<actors::reward::RewardRole>(
      [calls = std::move(calls), deadline](RoleContext context) mutable {
        return std::make_shared<actors::reward::RewardRole>(std::move(context), std::move(calls),
                                                            deadline);
      });
}

}  // namespace troupe::session
