// The trainer behind PolicyTrainer: a trained model, what is remembered between updates, and the
// state of the update under way. Everything runs on the owner's thread.
#pragma once

#include "runtime/learn/experience_check.hpp"
#include "runtime/learn/micro_batch_runner.hpp"
#include "runtime/learn/rl_state.hpp"
#include "runtime/learn/trainable_model.hpp"
#include "runtime/learn/trainer.hpp"
#include "runtime/learn/update_context.hpp"
#include "runtime/learn/weight_average.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::learn {

// kConfig, naming the key, when a value would make no sense; the config table has narrower ranges.
core::Result<void> check_settings(const TrainerSettings& settings);

// An update's mean score that beats the trend while the policy is this far (nats a token) from the
// sampler, or from the reference, raises `alarm/reward_up_kl_high`.
inline constexpr double kRolloutKlAlarm = 0.1;
inline constexpr double kReferenceKlAlarm = 0.5;
// Share of the trend that stays at each update.
inline constexpr double kScoreTrendKeep = 0.9;

class PolicyTrainerImpl final : public PolicyTrainer {
 public:
  PolicyTrainerImpl(std::unique_ptr<TrainableModel> model, TrainerSettings settings);

  core::Result<ValueTargets> prepare(std::vector<TrainGroup> groups) override;
  core::Result<UpdateReport> learn() override;
  std::shared_ptr<const model::PackedWeights> packed() override { return model_->packed(); }
  const model::ParamStore& master() const override { return model_->master(); }
  const model::ParamStore* average() const override {
    return average_ ? &average_->weights() : nullptr;
  }
  core::Version version() const override { return model_->version(); }
  bool has_adapter() const override { return model_->has_adapter(); }
  core::Result<void> save_adapter(const std::filesystem::path& folder,
                                  const std::string& base) const override {
    return model_->save_adapter(folder, base);
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override;
  core::Result<void> load_state(const std::filesystem::path& folder) override;

 private:
  // What the optimiser steps of one update add up to.
  struct Totals {
    ObjectiveStats stats;
    std::int64_t steps = 0, skipped = 0, micro_batches = 0, left_out = 0;
    double grad_norm_sum = 0, lr = 0;
    double ptx_nll_sum = 0, aux_sum = 0;
    bool frozen = false;
  };

  core::Result<void> score_start(UpdateContext& update);
  core::Result<void> plan(UpdateContext& update);
  void pass_all(Totals& totals);
  core::Result<double> optimiser_step(const MiniBatch& mini, Totals& totals);
  core::Result<StepReport> stopped(const MiniBatch& mini,
                                   core::Error error,
                                   const std::vector<double>& losses);
  double mean_score() const;
  UpdateReport report(const Totals& totals) const;
  void add_alarms(UpdateReport& report) const;

  TrainerSettings settings_;  // algo.kl_coef is the coefficient of now
  std::unique_ptr<TrainableModel> model_;
  MicroBatchRunner runner_;
  std::optional<WeightAverage> average_;
  std::optional<PtxTerm> ptx_;
  RlState state_;
  // Of the update between prepare() and learn().
  std::vector<TrainGroup> groups_;
  Staleness staleness_;
  double kl_of_sample_ = 0;
  double score_ = 0;                     // mean over the update's samples
  std::optional<UpdateContext> update_;  // refers to groups_
};

}  // namespace troupe::learn
