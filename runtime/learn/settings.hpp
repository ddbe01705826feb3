// The settings of the learning side, as plain structs. Names and defaults follow
// docs/algorithms.md; the config table fills them.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::learn {

enum class AdvantageKind { kGrpo, kDrGrpo, kRloo, kReinforceBaseline };
enum class ObjectiveKind { kPpo, kDecoupled };
enum class KlEstimator { kK2, kK3 };
enum class Reducer { kTokenMean, kSampleMean };

struct AlgoSettings {
  AdvantageKind advantage = AdvantageKind::kGrpo;
  ObjectiveKind objective = ObjectiveKind::kDecoupled;
  Reducer reducer = Reducer::kTokenMean;
  double eps_clip_low = 0.2, eps_clip_high = 0.2;
  double correction_max = 2.0;  // C of min(rho, C)
  double kl_coef = 0.0;         // in the loss; 0 = no reference model at all
  KlEstimator kl_estimator = KlEstimator::kK2;
  double temperature = 1.0;  // of sampling; log-probs use z / temperature
  double reward_clip_low = -10, reward_clip_high = 10;
  double entropy_coef = 0.0;
};

struct OptimSettings {
  double lr = 1e-6;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.0;
  double grad_norm_max = 1.0;            // 0 = no clipping
  double warmup_ratio = 0.03;            // of the optimiser steps of the run
  double lr_min_ratio = 0.1;             // cosine ends at this share of lr
  std::int64_t nonfinite_steps_max = 3;  // skipped in a row before the run stops
};

struct BatchSettings {
  std::int64_t micro_tokens_max = 2048;  // rows of one micro-batch
  std::int64_t mini_batches = 1;         // optimiser steps per pass over an update
  std::int64_t epochs = 1;               // passes over an update
};

}  // namespace troupe::learn
