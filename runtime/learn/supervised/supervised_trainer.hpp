// The trainer of sft, pretrain, rm, dpo, kto and the like: takes optimiser steps over chosen rows
// of a dataset, and evaluates the same losses on held-out rows. Rows are packed into micro-batches
// of at most micro_tokens_max tokens. The loss is normalised over the whole step, so packing has no
// effect beyond rounding (except on the load-balancing loss of experts); one plan gives the same
// bits on any number of threads. Owned by the role that trains and used on its device thread;
// numeric work on the team. Keeps the reference's log-probs of each row, 24 bytes or so.
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
  core::Version version = 0;  // optimiser steps, skipped ones included
  bool applied = false;       // false: skipped, something was not finite
  std::int64_t micro_batches = 0;
  std::int64_t tokens = 0;   // prompt and answer tokens of the rows
  std::int64_t targets = 0;  // tokens that the loss reads
  Metrics metrics;           // policy/loss, policy/grad_norm, policy/lr, rewards/..., ...
};

struct SupervisedEvaluation {
  Metrics metrics;                       // eval/loss, then eval/perplexity or eval/accuracy, ...
  double score_mean = 0, score_std = 1;  // rm only: over the scores of all answers
};

class SupervisedTrainer {
 public:
  // `reference`: panels of the frozen model for losses that compare with one; null: `master` as it
  // is now. Teachers are in `settings`. Errors: kConfig, for settings that make no sense.
  static core::Result<std::unique_ptr<SupervisedTrainer>> create(
      std::unique_ptr<model::ParamStore> master,
      std::shared_ptr<const model::PackedWeights> reference,
      const SupervisedSettings& settings,
      core::TeamRunner& team);
  virtual ~SupervisedTrainer() = default;

  // Takes one optimiser step over rows of the training set, which an id tells apart; each fits into
  // a micro-batch (check_rows). If the loss or gradient is not finite, skips the step; more than
  // nonfinite_steps_max skipped in a row is kNumeric.
  virtual core::Result<SupervisedStep> step(std::span<const data::SupervisedRow> rows) = 0;

  // Loss and metrics over the rows of the held-out set under the current weights.
  virtual core::Result<SupervisedEvaluation> evaluate(
      std::span<const data::SupervisedRow> rows) = 0;

  // Ranks at stage 3: master() is whole until the next call that learns or scores
  // (ranks/ranks.hpp).
  virtual core::Result<void> gather() { return {}; }
  virtual const model::ParamStore& master() const = 0;
  virtual core::Version version() const = 0;  // optimiser steps, skipped ones included

  // As in TrainableModel and PolicyTrainer.
  virtual void set_score_scale(double mean, double std) = 0;
  // With an adapter, that too, in the folder `adapter` next to it.
  virtual core::Result<void> save_model(const std::filesystem::path& folder,
                                        const std::filesystem::path& tokenizer_from) const = 0;
  virtual core::Result<void> save_state(const std::filesystem::path& folder) const = 0;
  virtual core::Result<void> load_state(const std::filesystem::path& folder) = 0;
};

}  // namespace troupe::learn
