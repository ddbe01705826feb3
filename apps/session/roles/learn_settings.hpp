// From the configuration to the settings of learning, generation and the run. Pure.
#pragma once

#include "actors/controller/run_plan.hpp"
#include "runtime/config/choice_table.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/trainer.hpp"

namespace troupe::app {

// The optimiser of one section of the configuration: config.actor or config.critic.
template <class Section>
learn::OptimSettings optim_of(const Section& section, const config::TrainConfig& config) {
  learn::OptimSettings optim;
  optim.lr = section.adam.lr;
  optim.beta1 = section.adam.betas[0];
  optim.beta2 = section.adam.betas[1];
  optim.eps = section.adam.eps;
  optim.weight_decay = section.adam.weight_decay;
  optim.grad_norm_max = section.max_norm;
  optim.warmup_ratio = section.lr_warmup_ratio;
  optim.lr_min_ratio = section.min_lr_ratio;
  optim.nonfinite_steps_max = config.train.nonfinite_steps_max;
  return optim;
}

// The words of the keys that choose among objectives, estimators and the like, and the rules between
// them: what the table of configuration keys is handed.
config::HandedTables learn_tables();

// Whether a critic, or a frozen reference model, is part of the run.
bool has_critic(const config::TrainConfig& config);
bool has_reference(const config::TrainConfig& config);

// AdamW, schedule and clipping of the trained model (keys actor.*).
learn::OptimSettings optim_settings(const config::TrainConfig& config);

// `updates`: of the whole run.
learn::TrainerSettings trainer_settings(const config::TrainConfig& config, std::uint64_t updates);

actors::SamplingSpec sampling_spec(const config::TrainConfig& config);

// Updates that the configuration asks for: train.max_steps, or as many as num_episodes passes over
// `prompts` rows give. Error: kConfig when that is none.
core::Result<std::uint64_t> updates_of_run(const config::TrainConfig& config, std::uint64_t prompts);

}  // namespace troupe::app
