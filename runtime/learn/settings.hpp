// The settings of the learning side, as plain structs. Names and defaults follow
// docs/algorithms.md; the configuration fills them.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/choices.hpp"
#include "runtime/learn/chosen.hpp"
#include "runtime/learn/corrections.hpp"
#include "runtime/learn/estimators.hpp"
#include "runtime/learn/objectives.hpp"
#include "runtime/learn/optim_kinds.hpp"
#include "runtime/learn/param_groups.hpp"
#include "runtime/learn/ranks/ranks.hpp"
#include "runtime/learn/schedule.hpp"
#include "runtime/model/trained_layout.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::learn {

// How scores are shaped before the group step; the clip is in AlgoSettings.
struct RewardShaping {
  bool normalise_running = false;    // (R - mean) / std of all scores so far
  std::int64_t overlong_tokens = 0;  // length of the penalised range; 0 = no penalty
  double overlong_factor = 1.0;
  std::int64_t response_tokens_max = 0;  // longest response; the penalised range ends here
  double stop_properly_coef = 1.0;       // for samples cut by length; 1 = no penalty
};

struct AlgoSettings {
  Chosen<Estimator> estimator = "group_norm";
  double gamma = 1.0, lambda = 1.0;
  double vtrace_rho_max = 1.0, vtrace_c_max = 1.0;
  bool whiten_std = true;      // false: whitening subtracts only the mean
  bool own_advantage = false;  // TrainerSettings::advantage replaces the estimator's advantages

  RewardShaping shaping;
  bool compares_steps = true;  // the group step is taken over steps, too (reward.process.baseline)
  double reward_clip_low = -10, reward_clip_high = 10;
  Chosen<ClipOrder> clip_order = "troupe";

  Chosen<Credit> credit = "token";

  Chosen<Objective> objective = "decoupled";
  double eps_clip_low = 0.2, eps_clip_high = 0.2;
  double dual_clip = 0.0;       // 0 = none, else above 1
  double correction_max = 2.0;  // C of min(rho, C) in decoupled and a3po
  double cispo_max = 5.0;       // upper bound of pi/mu in cispo
  double dpo_beta = 0.1;        // online_dpo
  Chosen<Correction> correction = "none";
  double correction_low = 0.5, correction_high = 2.0;

  Chosen<Reducer> reducer = "token_mean";
  double reducer_constant = 1.0;  // tokens; read by the reducer `constant`

  double kl_coef = 0.0;  // 0 = no KL term
  Chosen<KlEstimator> kl_estimator = "k2";
  bool kl_in_loss = true;      // false: in the reward
  bool kl_per_sample = false;  // in the reward as one sum, before the group step
  double kl_target = 0.0;      // KL of a sample that kl_coef is steered to; 0 = kl_coef stays
  double kl_horizon = 10000;   // samples over which kl_coef is steered
  double kl_stop = 0.0;        // KL to the anchor that ends an update's steps; 0 = never

  double teacher_coef = 0.0;  // of log p_teacher - l_mu in the advantages; 0 = no teacher
  double reward_coef = 1.0;   // of the rewards' advantages beside that

  std::int64_t samples_per_prompt = 0;  // 0: not known
  double temperature = 1.0;             // of sampling; log-probs are of logits / temperature
  double entropy_coef = 0.0;

  bool kl_in_reward() const { return kl_coef != 0 && !kl_in_loss; }
  bool needs_reference() const { return kl_coef != 0 || objective->pairs; }
  bool needs_teacher() const { return teacher_coef != 0; }
};

// Returns the first rule that a combination of settings breaks, or nothing. All rules between
// choices are here; the configuration and the trainers both call it.
std::optional<core::Refusal> refusal(const AlgoSettings& algo);

// kConfig, "<key> must be <rule>", unless the rule holds.
core::Result<void> require(bool holds, const std::string& key, const char* rule);

// Of the matrices that Muon steps (muon.hpp).
struct MuonSettings {
  double lr = 0.02;  // follows the schedule of OptimSettings::lr
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t ns_steps = 5;  // of the Newton-Schulz iteration
};

struct OptimSettings {
  Chosen<OptimKind> kind = "adamw";
  double lr = 1e-6;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.0;
  double momentum = 0.9;  // of sgd
  MuonSettings muon;
  std::vector<ParamGroup> groups;  // tensors with a rate and a decay of their own
  double grad_norm_max = 1.0;      // 0 = no clipping
  Chosen<Schedule> schedule = "cosine";
  double warmup_ratio = 0.03;            // of the optimiser steps of the run
  double lr_min_ratio = 0.1;             // the schedule ends at this share of lr
  double lr_decay_ratio = 0.2;           // share of the run's steps in which `wsd` decays
  std::int64_t lr_cycles = 1;            // of `restarts`
  std::int64_t nonfinite_steps_max = 3;  // steps skipped in a row; one more stops the run
  std::int64_t lanes = 1;                // of a step's gradient (lane_sum.hpp)
  Ranks ranks;                           // with which the model is trained
  bool offload = false;  // a device's master weights and moments are on the host, stepped there
  bool checkpointing = false;  // of activations: less memory, more time, the same bits
  double aux_loss_coef = 0;    // of the load-balancing loss of experts
  model::TrainedSet trained;   // all weights, all but some, or adapters
  bool freeze_pad_embedding = false;  // the input embedding of config.json's pad token
  // Type of the forward pass's packed weights: kF32, kBf16 or, on a device, kBf16Compute. The
  // forward pass then uses weights rounded to bf16; the backward pass uses the f32 weights, which
  // also get the gradient (straight-through).
  kernels::PanelDtype panels = kernels::PanelDtype::kF32;
};

struct BatchSettings {
  std::int64_t micro_tokens_max = 2048;  // rows of one micro-batch
  std::int64_t mini_batches = 1;         // optimiser steps per pass over an update
  std::int64_t epochs = 1;               // passes over an update
};

}  // namespace troupe::learn
