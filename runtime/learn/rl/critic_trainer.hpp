// The critic's trainer: a score model that predicts a value for every response token, read at the
// position before the token, and learns from the value targets that the policy's trainer computes.
// Owned by the critic role; everything runs on its device thread, numeric work on its team. Values,
// losses and gradients have the same bits for one micro-batch plan, whatever the number of threads.
// Memory is bounded by micro-batches of at most micro_tokens_max rows.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::learn {

struct CriticSettings {
  OptimSettings optim;
  BatchSettings batch;           // the policy's, so that both take the same number of steps
  double value_clip = 0.5;       // most that a value may move in an update; 0 = no clip
  std::int64_t total_steps = 0;  // optimiser steps of the whole run, for the schedule
  // V = scale * head + shift, so that a critic that starts from a reward model with normalised
  // scores predicts in normalised units too.
  double scale = 1, shift = 0;
  model::StorageDtype save_dtype = model::StorageDtype::kF32;  // of saved models
};

// [group][sample][token]
using TokenValues = std::vector<std::vector<std::vector<float>>>;

struct CriticReport {
  core::Version version = 0;  // optimiser steps, skipped ones included
  // value/loss, value/clipfrac, value/explained_var, value/grad_norm, value/lr, value/skipped_steps
  std::vector<std::pair<std::string, double>> metrics;
};

class CriticTrainer {
 public:
  // `master` has a score head. Errors: kConfig, naming the key, for settings that make no sense.
  static core::Result<std::unique_ptr<CriticTrainer>> create(
      std::unique_ptr<model::ParamStore> master, CriticSettings settings, core::TeamRunner& team);
  virtual ~CriticTrainer() = default;

  // The value of every response token under the current weights. Of the groups only ticket, prompt
  // and tokens are read. Errors: those of plan_update and plan_micro_batch; kNumeric, naming the
  // group of a value that is not finite.
  virtual core::Result<TokenValues> values(const std::vector<experience::Group>& groups) = 0;

  // Trains on an update: `old` holds the values at its start, `returns` the value targets. A step
  // whose loss or gradient is not finite is skipped and counted; more than nonfinite_steps_max in a
  // row is kNumeric. Error kInvalidArgument: lists whose sizes do not match the groups.
  virtual core::Result<CriticReport> update(const std::vector<experience::Group>& groups,
                                            const TokenValues& old,
                                            const TokenValues& returns) = 0;

  // Ranks at stage 3: master() is whole until the next call that learns or scores
  // (ranks/ranks.hpp).
  virtual core::Result<void> gather() { return {}; }
  virtual const model::ParamStore& master() const = 0;
  virtual core::Version version() const = 0;

  // The model as a Hugging Face folder, with the tokenizer files of another.
  virtual core::Result<void> save_model(const std::filesystem::path& folder,
                                        const std::filesystem::path& tokenizer_from) const = 0;
  // Weights (f32), moments and counts in `folder`, as PolicyTrainer::save_state says.
  virtual core::Result<void> save_state(const std::filesystem::path& folder) const = 0;
  virtual core::Result<void> load_state(const std::filesystem::path& folder) = 0;
};

}  // namespace troupe::learn
