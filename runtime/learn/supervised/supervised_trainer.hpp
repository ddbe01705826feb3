// The trainer of sft, pretrain, rm, dpo, ipo, cdpo and kto: one optimiser step over chosen rows of
// a dataset, and the same losses over held-out rows. Rows are packed into micro-batches of at most
// micro_tokens_max plan rows; the loss is normalised over the whole step, so packing does not
// change what is learned, and one plan gives the same bits on any number of threads. Owned by the
// command that trains; its thread; numeric work on the team.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/reference.hpp"
#include "runtime/learn/supervised/row_runner.hpp"
#include "runtime/learn/supervised/settings.hpp"
#include "runtime/learn/trainable_model.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::learn {

struct SupervisedStep {
  bool applied = false;  // false: skipped, something was not finite
  std::int64_t micro_batches = 0;
  std::int64_t tokens = 0;   // prompt and answer tokens of the rows
  std::int64_t targets = 0;  // tokens that the loss reads
  Metrics metrics;           // policy/loss, policy/grad_norm, policy/lr, rewards/..., ...
};

struct SupervisedEvaluation {
  Metrics metrics;                       // eval/loss, eval/perplexity, eval/accuracy, eval/margins
  double score_mean = 0, score_std = 1;  // of a reward model, over all answers
};

class SupervisedTrainer {
 public:
  // `reference`: panels of the frozen model for losses that have one; null: of `master` as it is
  // now. Errors: kConfig, for settings that make no sense.
  static core::Result<std::unique_ptr<SupervisedTrainer>> create(
      std::unique_ptr<model::ParamStore> master,
      std::shared_ptr<const model::PackedWeights> reference,
      const SupervisedSettings& settings,
      core::TeamRunner& team);

  // kConfig, naming the row: one that no micro-batch holds. Call once for each dataset.
  core::Result<void> check(const data::SupervisedDataset& data) const;

  // One optimiser step over `rows` of `data`, which outlives this object. A loss or gradient that
  // is not finite skips it; more than nonfinite_steps_max in a row is kNumeric.
  core::Result<SupervisedStep> step(const data::SupervisedDataset& data,
                                    std::span<const std::uint64_t> rows);

  // The losses of all rows under the current weights.
  core::Result<SupervisedEvaluation> evaluate(const data::SupervisedDataset& data);

  const model::ParamStore& master() const { return model_->master(); }
  TrainableModel& model() { return *model_; }
  core::Version version() const { return model_->version(); }
  core::Result<void> save_state(const std::filesystem::path& folder) const {
    return model_->save_state(folder);
  }
  core::Result<void> load_state(const std::filesystem::path& folder) {
    return model_->load_state(folder);
  }

 private:
  SupervisedTrainer(std::unique_ptr<TrainableModel> model,
                    std::shared_ptr<const model::PackedWeights> reference,
                    const SupervisedSettings& settings);
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
