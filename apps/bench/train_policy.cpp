#include "apps/bench/train_policy.hpp"

#include "apps/bench/machine.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/params.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::app {
namespace {

constexpr std::int64_t kCalibration_bytes = std::int64_t{64} << 20;  // only its FMA peak is used

double rss_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // given in KiB
}

double fma_peak(core::TeamRunner& team) {
  return measure_limits(team, kCalibration_bytes, 4).fma_gflops;
}

}  // namespace

core::Result<TrainFigures> time_steps(core::TeamRunner& team,
                                      const StepCall& before,
                                      const StepCall& step) {
  TrainFigures figures;
  figures.fma_gflops = fma_peak(team);
  std::vector<StepCost> costs;
  for (int i = 0; i <= kTimedSteps; ++i) {
    TROUPE_TRY(before(i));
    const StepMeter meter;
    TROUPE_TRY(step(i));
    const StepCost cost = meter.cost();
    if (i == 0) {
      figures.first_page_faults = cost.page_faults;
    } else {
      costs.push_back(cost);
    }
    figures.peak_mb = std::max(figures.peak_mb, pss_mb());
  }
  figures.rss_mb = rss_mb();
  figures.fma_gflops = std::max(figures.fma_gflops, fma_peak(team));
  figures.cost = median_of(costs);
  return figures;
}

core::Result<TrainFigures> time_policy(const TrainJob& job,
                                       const learn::TrainerSettings& settings,
                                       std::vector<experience::Group>& groups,
                                       core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(master, model::load_model(job.model));
  TROUPE_TRY(check_context(job, master->spec()));
  groups = random_groups(job, master->spec());
  TROUPE_TRY_ASSIGN(flops, product_flops(groups, master->spec(), settings));
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  TROUPE_TRY_ASSIGN(trainer, trainers->policy(std::move(master), settings, team));
  std::unique_ptr<learn::CriticTrainer> critic;
  if (job.objective == "ppo") {
    TROUPE_TRY_ASSIGN(scores, model::load_model(job.model, model::HeadKind::kScore, 1));
    TROUPE_TRY_ASSIGN(critic_flops, product_flops(groups, scores->spec(), settings));
    flops += critic_flops * 8.0 / 6.0;  // a forward pass for the values, and an update
    learn::CriticSettings of_critic;
    of_critic.optim = settings.optim;
    of_critic.batch = settings.batch;
    of_critic.total_steps = settings.total_steps;
    TROUPE_TRY_SET(critic, trainers->critic(std::move(scores), of_critic, team));
  }
  learn::UpdateReport last;
  const auto sample = [&](int i) -> core::Result<void> {
    for (experience::Group& group : groups)
      group.ticket.update = static_cast<std::uint64_t>(i);
    return record_behaviour(groups, *trainer->packed(), settings, team);
  };
  const auto update = [&](int) -> core::Result<void> {
    if (critic == nullptr) {
      TROUPE_TRY_SET(last, trainer->update(groups));
      return {};
    }
    TROUPE_TRY_ASSIGN(values, critic->values(groups));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (std::size_t i = 0; i < groups[g].samples.size(); ++i)
        groups[g].samples[i].values = values[g][i];
    }
    TROUPE_TRY_ASSIGN(targets, trainer->prepare(groups));
    TROUPE_TRY(critic->update(groups, values, targets.returns));
    TROUPE_TRY_SET(last, trainer->learn());
    return {};
  };
  TROUPE_TRY_ASSIGN(figures, time_steps(team, sample, update));
  figures.flops = flops;
  figures.tokens = last.policy_tokens;
  figures.rows = last.rows;
  figures.micro_batches = last.micro_batches;
  return figures;
}

}  // namespace troupe::app
