// The trainer of sft, pretrain, rm, dpo, ipo, cdpo and kto: one optimiser step over chosen rows of
// a dataset, and the same losses over held-out rows. Rows are packed into micro-batches of at most
// micro_tokens_max plan rows; the loss is normalised over the whole step, so packing does not
// change what is learned, and one plan gives the same bits on any number of threads. Owned by the
// command that trains; its thread; numeric work on the team.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/loss.hpp"
#include "runtime/learn/supervised/settings.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

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
  // `reference`: panels of the frozen model for losses that compare with one; null: `master` as it
  // is now. Errors: kConfig, for settings that make no sense.
  static core::Result<std::unique_ptr<SupervisedTrainer>> create(
      std::unique_ptr<model::ParamStore> master,
      std::shared_ptr<const model::PackedWeights> reference,
      const SupervisedSettings& settings,
      core::TeamRunner& team);
  virtual ~SupervisedTrainer() = default;

  // Call once for each dataset. kConfig, naming the row: a row does not fit into a micro-batch.
  virtual core::Result<void> check(const data::SupervisedDataset& data) const = 0;

  // One optimiser step over `rows` of `data`, which outlives this object. A loss or gradient that
  // is not finite skips it; more than nonfinite_steps_max in a row is kNumeric.
  virtual core::Result<SupervisedStep> step(const data::SupervisedDataset& data,
                                            std::span<const std::uint64_t> rows) = 0;

  // The losses of all rows under the current weights.
  virtual core::Result<SupervisedEvaluation> evaluate(const data::SupervisedDataset& data) = 0;

  virtual const model::ParamStore& master() const = 0;
  virtual core::Version version() const = 0;  // optimiser steps, skipped ones included

  // As in TrainableModel and PolicyTrainer.
  virtual void set_score_scale(double mean, double std) = 0;
  virtual bool has_adapter() const = 0;
  virtual core::Result<void> save_adapter(const std::filesystem::path& folder,
                                          const std::string& base) const = 0;
  virtual core::Result<void> save_state(const std::filesystem::path& folder) const = 0;
  virtual core::Result<void> load_state(const std::filesystem::path& folder) = 0;
};

}  // namespace troupe::learn
