// The job that `troupe bench train` measures: groups of random samples of one size, and the
// operations that one update over them needs. Pure functions; value types.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/trainer.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

struct TrainJob {
  std::string model;
  std::string objective = "grpo";
  std::int64_t prompts = 0, samples = 0;  // 0: as the objective has it
  std::int64_t prompt_tokens = 0, new_tokens = 0;
  std::int64_t micro_tokens_max = 2048;
  std::string device = "cpu";
  std::int64_t threads = 0;
};

// sft, dpo, rm: sequences or pairs in place of sampled groups.
bool is_supervised(const std::string& objective);

// Fills in the sizes that were not given: groups of 4 x 8 samples, 32 + 64 tokens; for ppo 32 x 1;
// for sft 16 sequences of 256 tokens; for dpo and rm 8 pairs of 32 + 96.
void choose_sizes(TrainJob& job);

// PPO with a critic, GRPO, Dr. GRPO, RLOO or REINFORCE with a baseline, by the names of
// algo.advantage.estimator.
core::Result<learn::TrainerSettings> trainer_settings(const TrainJob& job);

// Random prompts and responses; half of each group's samples score 1, the others 0.
std::vector<experience::Group> random_groups(const TrainJob& job, const model::ModelSpec& spec);

// Errors: kConfig, when a prompt and its response are longer than the model's context.
core::Result<void> check_context(const TrainJob& job, const model::ModelSpec& spec);

// Weights that a forward pass over so many rows multiplies with, times the rows.
double weights_by_rows(const model::ModelSpec& spec, std::int64_t rows, std::int64_t logit_rows);

// Fills in what sampling under `weights` would have recorded: log-probs and versions.
core::Result<void> record_behaviour(std::vector<experience::Group>& groups,
                                    const model::PackedWeights& weights,
                                    const learn::TrainerSettings& settings,
                                    core::TeamRunner& team);

// Floating-point operations of the matrix products of one update: 2 a weight and row forward, 4
// backward; the head's only for rows whose next token is learnt. Attention and what the backward
// pass computes a second time are not counted.
core::Result<double> product_flops(const std::vector<experience::Group>& groups,
                                   const model::ModelSpec& spec,
                                   const learn::TrainerSettings& settings);

}  // namespace troupe::app
