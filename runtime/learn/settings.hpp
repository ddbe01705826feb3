// The settings of the learning side, as plain structs. Names and defaults are those of the keys
// that fill them (the .def files of this room); what is no key stands here.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/config/key_types.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/advantage/estimators.hpp"
#include "runtime/learn/choices.hpp"
#include "runtime/learn/chosen.hpp"
#include "runtime/learn/loss/corrections.hpp"
#include "runtime/learn/loss/objectives.hpp"
#include "runtime/learn/optim/optim_kinds.hpp"
#include "runtime/learn/optim/param_groups.hpp"
#include "runtime/learn/optim/schedule.hpp"
#include "runtime/learn/ranks/ranks.hpp"
#include "runtime/model/trained_layout.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::learn {

using config::Float, config::Floats, config::Int, config::Texts;

// How scores are shaped before the group step; the clip is in AlgoSettings.
struct RewardShaping {
#define KEYS "runtime/learn/shaping_keys.def"
#include "runtime/config/fill.def"

  bool normalise_running = false;        // (R - mean) / std of all scores so far
  std::int64_t response_tokens_max = 0;  // longest response; the overlong penalty's range ends here
};

struct AlgoSettings {
#define KEYS "runtime/learn/algo_keys.def"
#include "runtime/config/fill.def"
#define KEYS "runtime/learn/optim_keys.def"
#define TAKE take_actor
#define SECOND
#include "runtime/config/fill.def"

  bool own_advantage = false;  // TrainerSettings::advantage replaces the estimator's advantages

  RewardShaping shaping;
  bool compares_steps = true;  // the group step is taken over steps, too (reward.process.baseline)
  double reward_clip_low = -10, reward_clip_high = 10;

  double teacher_coef = 0.0;  // of log p_teacher - l_mu in the advantages; 0 = no teacher
  double reward_coef = 1.0;   // of the rewards' advantages next to that

  std::int64_t samples_per_prompt = 0;  // 0: not known
  double temperature = 1.0;             // of sampling; log-probs are of logits / temperature

  // Divisor of the reducer `constant`.
  double reducer_tokens() const {
    return reducer_constant > 0 ? reducer_constant
                                : static_cast<double>(shaping.response_tokens_max);
  }
  double eps_clip_low() const {
    return eps_clip_low_high.empty() ? eps_clip : eps_clip_low_high[0];
  }
  double eps_clip_high() const {
    return eps_clip_low_high.empty() ? eps_clip : eps_clip_low_high[1];
  }
  bool kl_in_reward() const {
    return kl.init_coef != 0 && !kl.use_loss;
  }
  bool needs_reference() const {
    return kl.init_coef != 0 || objective->pairs;
  }
  bool needs_teacher() const {
    return teacher_coef != 0;
  }
};

// Returns the first rule that a combination of settings breaks, or nothing. All rules between
// choices are here; the configuration and the trainers both call it.
std::optional<core::Refusal> refusal(const AlgoSettings& algo);

// kConfig, "<key> must be <rule>", unless the rule holds.
core::Result<void> require(bool holds, const std::string& key, const char* rule);

struct OptimSettings {
#define KEYS "runtime/learn/optim_keys.def"
#include "runtime/config/fill.def"
#define KEYS "runtime/learn/model_keys.def"
#define TAKE take_model
#include "runtime/config/fill.def"
#define KEYS "runtime/learn/train_keys.def"
#define TAKE take_train
#include "runtime/config/fill.def"

  std::vector<ParamGroup> groups;  // value of the key param_groups
  Ranks ranks;                     // with which the model is trained
  model::TrainedSet trained;       // all weights, all but some, or adapters
  // Type of the forward pass's packed weights: kF32, kBf16 or, on a device, kBf16Compute. The
  // forward pass then uses weights rounded to bf16; the backward pass uses the f32 weights, which
  // also get the gradient (straight-through).
  kernels::PanelDtype panels = kernels::PanelDtype::kF32;
};
using MuonSettings = OptimSettings::muon_keys;

struct BatchSettings {
#define KEYS "runtime/learn/train_keys.def"
#define SECOND
#include "runtime/config/fill.def"

  std::int64_t mini_batches = 1;  // optimiser steps per pass over an update
};

}  // namespace troupe::learn
