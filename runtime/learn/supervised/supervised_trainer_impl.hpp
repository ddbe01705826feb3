// The trainer behind SupervisedTrainer: a trained model, the frozen reference, and the pass over
// rows. Everything runs on the owner's thread.
#pragma once

#include "runtime/learn/supervised/reference.hpp"
#include "runtime/learn/supervised/row_runner.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "runtime/learn/trainable_model.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::learn {

class SupervisedTrainerImpl final : public SupervisedTrainer {
 public:
  SupervisedTrainerImpl(std::unique_ptr<TrainableModel> model,
                        std::shared_ptr<const model::PackedWeights> reference,
                        const SupervisedSettings& settings);

  core::Result<void> check(const data::SupervisedDataset& data) const override;
  core::Result<SupervisedStep> step(const data::SupervisedDataset& data,
                                    std::span<const std::uint64_t> rows) override;
  core::Result<SupervisedEvaluation> evaluate(const data::SupervisedDataset& data) override;
  const model::ParamStore& master() const override { return model_->master(); }
  core::Version version() const override { return model_->version(); }
  void set_score_scale(double mean, double std) override { model_->set_score_scale(mean, std); }
  bool has_adapter() const override { return model_->has_adapter(); }
  core::Result<void> save_adapter(const std::filesystem::path& folder,
                                  const std::string& base) const override {
    return model_->save_adapter(folder, base);
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override {
    return model_->save_state(folder);
  }
  core::Result<void> load_state(const std::filesystem::path& folder) override {
    return model_->load_state(folder);
  }

 private:
  using Rows = std::vector<data::SupervisedRow>;
  core::Result<RowValues> score(const model::PackedWeights& weights,
                                std::span<const data::SupervisedRow> rows);
  core::Result<RowFacts> facts(const data::SupervisedDataset& data, const Rows& rows);
  core::Result<StepTotals> totals(const RowFacts& facts, const Rows& rows);
  core::Result<double> mismatched_kl(const Rows& rows);
  std::vector<std::vector<std::size_t>> pack(std::span<const data::SupervisedRow> rows) const;
  double plan_rows_of(std::span<const data::SupervisedRow> rows) const;

  const SupervisedSettings settings_;
  std::unique_ptr<TrainableModel> model_;
  RowRunner runner_;
  Reference reference_;
};

}  // namespace troupe::learn
