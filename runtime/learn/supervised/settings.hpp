// The settings of supervised and preference training, as plain structs. The configuration fills
// them.
#pragma once

#include "runtime/learn/settings.hpp"
#include "runtime/learn/supervised/methods.hpp"

#include <cstdint>

namespace troupe::learn {

struct LossSettings {
  Chosen<Method> method = "sft";
  double beta = 0.1;
  double label_smoothing = 0;   // dpo_rows: share of pairs labelled the wrong way round
  double nll_coef = 0;          // next-token loss on better answers, per token
  bool length_mean = false;     // means over tokens in place of sums
  double desirable_weight = 1;  // kto
  double undesirable_weight = 1;
};

struct SupervisedSettings {
  LossSettings loss;
  OptimSettings optim;
  std::int64_t micro_tokens_max = 2048;  // rows of one micro-batch
  std::int64_t total_steps = 0;          // optimiser steps of the whole run, for the schedule
};

}  // namespace troupe::learn
