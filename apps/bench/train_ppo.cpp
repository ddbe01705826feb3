#include "apps/bench/train_ppo.hpp"

#include "runtime/learn/trainers.hpp"
#include "runtime/model/params.hpp"

#include <utility>
#include <vector>

namespace troupe::app {

core::Result<TrainFigures> time_ppo(const TrainJob& job,
                                    const learn::TrainerSettings& settings,
                                    core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(master, model::load_model(job.model));
  TROUPE_TRY(check_context(job, master->spec()));
  TROUPE_TRY_ASSIGN(scores, model::load_model(job.model, model::HeadKind::kScore, 1));
  std::vector<experience::Group> groups = random_groups(job, master->spec());
  TROUPE_TRY_ASSIGN(policy_flops, product_flops(groups, master->spec(), settings));
  TROUPE_TRY_ASSIGN(critic_flops, product_flops(groups, scores->spec(), settings));
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(policy, trainers->policy(std::move(master), settings, team));
  learn::CriticSettings of_critic;
  of_critic.optim = settings.optim;
  of_critic.batch = settings.batch;
  of_critic.total_steps = settings.total_steps;
  TROUPE_TRY_ASSIGN(critic, trainers->critic(std::move(scores), of_critic, team));
  const auto sample = [&](int i) -> core::Result<void> {
    for (experience::Group& group : groups)
      group.ticket.update = static_cast<std::uint64_t>(i);
    return record_behaviour(groups, *policy->packed(), settings, team);
  };
  learn::UpdateReport last;
  const auto update = [&](int) -> core::Result<void> {
    TROUPE_TRY_ASSIGN(values, critic->values(groups));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < groups[g].samples.size(); ++i)
        groups[g].samples[i].values = values[g][i];
    }
    TROUPE_TRY_ASSIGN(targets, policy->prepare(groups));
    TROUPE_TRY_ASSIGN(critic_report, critic->update(groups, values, targets.returns));
    TROUPE_TRY_SET(last, policy->learn());
    return {};
  };
  TROUPE_TRY_ASSIGN(figures, time_steps(team, sample, update));
  // Of the critic a forward pass for the values, and an update.
  figures.flops = policy_flops + critic_flops * 8.0 / 6.0;
  figures.tokens = last.policy_tokens;
  figures.rows = last.rows;
  figures.micro_batches = last.micro_batches;
  return figures;
}

}  // namespace troupe::app
