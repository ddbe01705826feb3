// The settings of supervised and preference training, as plain structs. The config table fills
// them.
#pragma once

#include "runtime/learn/settings.hpp"

#include <cstdint>

namespace troupe::learn {

enum class LossKind {
  kAnswer,  // sft, pretrain: next-token loss over the targets
  kReward,  // rm: pairs of scores
  kDpo,     // dpo, and cdpo with label_smoothing above 0
  kIpo,
  kKto,
};

struct LossSettings {
  LossKind kind = LossKind::kAnswer;
  double beta = 0.1;
  double label_smoothing = 0;   // dpo: share of pairs labelled the wrong way round
  double nll_coef = 0;          // next-token loss on better answers, per token
  bool length_mean = false;     // ipo: means over tokens in place of sums
  double desirable_weight = 1;  // kto
  double undesirable_weight = 1;

  bool pairs() const {
    return kind == LossKind::kReward || kind == LossKind::kDpo || kind == LossKind::kIpo;
  }
  bool has_reference() const {
    return kind == LossKind::kDpo || kind == LossKind::kIpo || kind == LossKind::kKto;
  }
};

struct SupervisedSettings {
  LossSettings loss;
  OptimSettings optim;
  std::int64_t micro_tokens_max = 2048;  // rows of one micro-batch
  std::int64_t total_steps = 0;          // optimiser steps of the whole run, for the schedule
};

}  // namespace troupe::learn
