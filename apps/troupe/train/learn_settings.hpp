// From the configuration to the settings of learning, generation and the run. Pure.
#pragma once

#include "actors/controller/run_plan.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/train_config.hpp"
#include "runtime/learn/trainer.hpp"

namespace troupe::app {

// `updates`: of the whole run.
learn::TrainerSettings trainer_settings(const core::TrainConfig& config, std::uint64_t updates);

actors::SamplingSpec sampling_spec(const core::TrainConfig& config);

// Updates that the configuration asks for: train.max_steps, or as many as num_episodes passes over
// `prompts` rows give. Error: kConfig when that is none.
core::Result<std::uint64_t> updates_of_run(const core::TrainConfig& config, std::uint64_t prompts);

}  // namespace troupe::app
