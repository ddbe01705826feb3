// The trainer behind PolicyTrainer: master weights, one gradient store, two moments and one packed
// copy of the weights that it shares with the engine. Everything runs on the owner's thread.
#pragma once

#include "runtime/learn/experience_check.hpp"
#include "runtime/learn/micro_batch_runner.hpp"
#include "runtime/learn/optimizer.hpp"
#include "runtime/learn/schedule.hpp"
#include "runtime/learn/trainer.hpp"
#include "runtime/learn/update_context.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::learn {

// kConfig, naming the key, when a value would make no sense; the config table has narrower ranges.
core::Result<void> check_settings(const TrainerSettings& settings);

class PolicyTrainerImpl final : public PolicyTrainer {
 public:
  PolicyTrainerImpl(std::unique_ptr<model::ParamStore> master,
                    TrainerSettings settings,
                    core::TeamRunner& team);

  core::Result<UpdateReport> update(const std::vector<TrainGroup>& groups) override;
  std::shared_ptr<const model::PackedWeights> packed() override;
  const model::ParamStore& master() const override { return *master_; }
  core::Version version() const override { return version_; }
  core::Result<void> save_state(const std::filesystem::path& folder) const override;
  core::Result<void> load_state(const std::filesystem::path& folder) override;

 private:
  // What the optimiser steps of one update add up to.
  struct Totals {
    ObjectiveStats stats;
    std::int64_t steps = 0, skipped = 0, micro_batches = 0;
    double grad_norm_sum = 0, lr = 0;
  };

  core::Result<UpdateContext> prepare(const std::vector<TrainGroup>& groups,
                                      const Staleness& staleness);
  core::Result<void> score_anchors(UpdateContext& update);
  core::Result<void> optimiser_step(const UpdateContext& update,
                                    const MiniBatch& mini,
                                    Totals& totals);
  core::Result<void> skip_step(const UpdateContext& update,
                               const MiniBatch& mini,
                               const std::string& what,
                               Totals& totals);
  UpdateReport report(const UpdateContext& update,
                      const Totals& totals,
                      const Staleness& staleness) const;
  void zero_gradients();

  TrainerSettings settings_;
  core::TeamRunner& team_;
  std::unique_ptr<model::ParamStore> master_;
  model::ParamStore grads_;
  AdamW optimiser_;
  Schedule schedule_;
  MicroBatchRunner runner_;
  std::shared_ptr<model::PackedWeights> packed_;  // of version_, or older, or none yet
  std::shared_ptr<model::PackedWeights> spare_;   // of the version before, for its memory
  core::Version version_ = 0;
  std::int64_t skipped_in_row_ = 0;
};

}  // namespace troupe::learn
