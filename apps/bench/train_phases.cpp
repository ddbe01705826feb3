#include "apps/bench/train_phases.hpp"

#include "runtime/learn/micro_batch.hpp"
#include "runtime/learn/optimizer.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/learn/update_context.hpp"
#include "runtime/model/params.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

namespace troupe::app {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds since the last call.
class Lap {
 public:
  double operator()() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

class PhaseRun {
 public:
  PhaseRun(const learn::Trainers& trainers,
           std::unique_ptr<model::ParamStore> master,
           const learn::TrainerSettings& settings,
           core::TeamRunner& team)
      : settings_(settings),
        team_(team),
        master_(std::move(master)),
        grads_(master_->same_layout()),
        optimiser_(*master_, master_->shared_layout(), settings.optim),
        weights_(master_->spec()),
        pass_(trainers.pass(team, *master_, grads_)) {
    pack();
  }

  core::Result<TrainPhases> pass(const std::vector<experience::Group>& groups) {
    TROUPE_TRY_ASSIGN(update, learn::plan_update(groups, settings_.batch));
    TrainPhases phases;
    for (const learn::MiniBatch& mini : update.mini_batches) {
      Lap lap;
      team_.run([&](core::Team member) {
        const auto [begin, end] = member.share(grads_.size(), 64);
        std::memset(grads_.data() + begin, 0,
                    static_cast<std::size_t>(end - begin) * sizeof(float));
      });
      phases.optimizer_s += lap();
      for (const learn::MicroBatch& micro : mini.micro_batches) {
        const auto samples = learn::sample_groups(groups, micro);
        TROUPE_TRY(model::build_group_plan(samples, master_->spec(), team_.size(), plan_));
        const auto temperature = static_cast<float>(settings_.algo.temperature);
        TROUPE_TRY_ASSIGN(logprobs,
                          pass_->logprobs(weights_, plan_.plan, plan_.targets, temperature, true));
        phases.forward_s += lap();
        TROUPE_TRY(pass_->backward(1.0f / static_cast<float>(logprobs.size())));
        phases.backward_s += lap();
      }
      const double norm = learn::global_norm(team_, grads_.data(), grads_.size());
      optimiser_.step(team_, *master_, grads_, settings_.optim.lr,
                      learn::clip_scale(norm, settings_.optim.grad_norm_max));
      pack();
      phases.optimizer_s += lap();
    }
    return phases;
  }

 private:
  void pack() {
    team_.run([&](core::Team member) { weights_.fill(member, *master_, 0); });
  }

  const learn::TrainerSettings& settings_;
  core::TeamRunner& team_;
  std::unique_ptr<model::ParamStore> master_;
  model::ParamStore grads_;
  learn::AdamW optimiser_;
  model::PackedWeights weights_;
  std::unique_ptr<learn::TrainPass> pass_;
  model::GroupPlan plan_;
};

}  // namespace

core::Result<TrainPhases> measure_phases(const TrainJob& job,
                                         const learn::TrainerSettings& settings,
                                         const std::vector<experience::Group>& groups,
                                         int repetitions,
                                         core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(master, model::load_model(job.model));
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  std::vector<double> forward, backward, optimizer;
  PhaseRun run(*trainers, std::move(master), settings, team);
  for (int i = 0; i <= repetitions; ++i) {
    TROUPE_TRY_ASSIGN(phases, run.pass(groups));
    if (i == 0) continue;
    forward.push_back(phases.forward_s);
    backward.push_back(phases.backward_s);
    optimizer.push_back(phases.optimizer_s);
  }
  return TrainPhases{median(forward), median(backward), median(optimizer)};
}

}  // namespace troupe::app
