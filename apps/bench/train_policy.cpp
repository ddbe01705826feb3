#include "apps/bench/train_policy.hpp"

#include "kernels/calibrate.hpp"
#include "kernels/ops.hpp"
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
  const kernels::Ops* level = nullptr;  // a device's inside a region of its team
  team.run([&](core::Team member) {
    if (member.rank == 0) level = &kernels::ops();
  });
  kernels::Calibration calibration(*level, team.memory(), kCalibration_bytes);
  double gflops = 0;
  team.run([&](core::Team member) {
    const kernels::MachineLimits limits = calibration.measure(member);
    if (member.rank == 0) gflops = limits.fma_gflops;
  });
  return gflops;
}

}  // namespace

core::Result<TrainFigures> time_steps(core::TeamRunner& team,
                                      const StepCall& before,
                                      const StepCall& step) {
  TrainFigures figures;
  figures.fma_gflops = fma_peak(team);
  std::vector<StepCost> costs;
  StepMeter meter;
  for (int i = 0; i <= kTimedSteps; ++i) {
    TROUPE_TRY(before(i));
    meter.start();
    TROUPE_TRY(step(i));
    const StepCost cost = meter.stop();
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
  learn::UpdateReport last;
  const auto sample = [&](int i) -> core::Result<void> {
    for (experience::Group& group : groups)
      group.ticket.update = static_cast<std::uint64_t>(i);
    return record_behaviour(groups, *trainer->packed(), settings, team);
  };
  const auto update = [&](int) -> core::Result<void> {
    TROUPE_TRY_SET(last, trainer->update(groups));
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
