// The settings of supervised and preference training, as plain structs. The configuration fills
// them.
#pragma once

#include "runtime/learn/settings.hpp"
#include "runtime/learn/supervised/methods.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::learn {

struct LossSettings {
  Chosen<Method> method = "sft";
  std::optional<Chosen<PairLoss>> pair_loss;  // in place of the method's own row of that table
  double beta = 0.1;                          // of the method, as nll_coef
  double nll_coef = 0;  // weight of the next-token loss of better answers, per token
#define KEYS "runtime/learn/supervised/loss_keys.def"
#include "runtime/config/fill.def"
  // prm: the tokens among which the model chooses at a placeholder, the best first; empty: all.
  std::vector<std::int32_t> reward_tokens;

  // The row of the table of losses of a pair; null: the method has a formula of its own.
  const PairLoss* pair_row() const;
  StepWide step_wide() const;
  bool takes_means() const {
    return dpo.length_mean || method->length_mean;
  }
  double nll_weight() const {
    return nll_coef + method->nll;
  }
};

// The first rule that a combination of these settings breaks, or nothing. The configuration and the
// trainer both call it.
std::optional<core::Refusal> refusal(const LossSettings& loss);

struct SupervisedSettings {
  LossSettings loss;
  OptimSettings optim;
  std::int64_t micro_tokens_max = 2048;  // rows of one micro-batch
  std::int64_t total_steps = 0;          // optimiser steps of the whole run, for the schedule
  // For methods with a teacher; SupervisedRow::teacher is the index of a row's teacher.
  std::vector<std::shared_ptr<const model::PackedWeights>> teachers;
  std::string model;  // as configured; adapters name it as their base
  model::StorageDtype save_dtype = model::StorageDtype::kF32;  // of saved models
};

}  // namespace troupe::learn
