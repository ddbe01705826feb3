// The policy's trainer: owns the master weights, gradients and AdamW moments, and turns one
// update's groups into optimiser steps. Runs on the policy role's device thread; numeric work on
// its team. Losses and gradients have the same bits for one micro-batch plan, whatever the number
// of threads.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/advantage/advantage_source.hpp"
#include "runtime/learn/rl/ptx_term.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::learn {

struct TrainerSettings {
  AlgoSettings algo;
  OptimSettings optim;
  BatchSettings batch;
  std::int64_t total_steps = 0;      // optimiser steps of the whole run, for the schedule
  std::uint64_t freezing_steps = 0;  // first updates, which leave the policy unchanged
  double ema_beta = -1;              // of the moving average of the weights; below 0 = none
  model::StorageDtype save_dtype = model::StorageDtype::kF32;  // of saved models
  // A user's own advantages; null: those of the estimator, or this is a rank above 0.
  std::shared_ptr<AdvantageSource> advantage;
  std::shared_ptr<const PtxTexts> ptx;  // texts of a next-token loss in every step; null: none
  // Where a batch that stops the run is written; empty = nowhere.
  std::filesystem::path dump_folder;
};

struct UpdateReport {
  core::Version version = 0;  // after the update
  std::int64_t optimiser_steps = 0, skipped_steps = 0, micro_batches = 0;
  std::int64_t policy_tokens = 0, rows = 0;
  // Ordered (name, value) pairs: policy/loss, policy/grad_norm, policy/lr, policy/entropy,
  // policy/clipfrac, kl/ref, kl/rollout_train, async/ess, async/staleness_max, ...
  // (docs/metrics.md)
  std::vector<std::pair<std::string, double>> metrics;
};

// What the critic learns from: one value target per policy token; empty without a critic.
struct ValueTargets {
  std::vector<std::vector<std::vector<float>>> returns;  // [group][sample][token]
};

class PolicyTrainer {
 public:
  static core::Result<std::unique_ptr<PolicyTrainer>> create(
      std::unique_ptr<model::ParamStore> master, TrainerSettings settings, core::TeamRunner& team);
  virtual ~PolicyTrainer() = default;

  // An update has two halves, so that a critic can train at the same time as the policy. `prepare`
  // takes the groups (in any order; with `values` if the estimator has a critic), computes anchors
  // and advantages, and returns the critic's targets in the groups' order. `learn` then takes the
  // optimiser steps. If `prepare` fails, the trainer is as it was before. A step whose loss or
  // gradient is not finite is skipped and counted; more than nonfinite_steps_max in a row is
  // kNumeric.
  virtual core::Result<ValueTargets> prepare(std::vector<experience::Group> groups) = 0;
  virtual core::Result<UpdateReport> learn() = 0;
  core::Result<UpdateReport> update(std::vector<experience::Group> groups) {  // both
    TROUPE_TRY(prepare(std::move(groups)));
    return learn();
  }

  // Panels of the current weights for the engine, made once per version and shared.
  virtual std::shared_ptr<const model::PackedWeights> packed() = 0;

  // Ranks at stage 3: they have divided the weights (ranks/ranks.hpp). master() and packed() are
  // whole after gather(), until the next call that learns or scores. each_part() calls `see` for
  // all weights, each once: one part of the model after the other, which lies at `flat +
  // part.begin` meanwhile. All ranks call these two.
  virtual bool divided() const { return false; }
  virtual core::Result<void> gather() { return {}; }
  using See = std::function<void(core::Range part, const float* flat)>;
  virtual core::Result<void> each_part(const See& see) {
    see({0, master().size()}, master().data());
    return {};
  }
  virtual const model::ParamStore& master() const = 0;
  // Moving average of the weights over optimiser steps; null without one.
  virtual const model::ParamStore* average() const = 0;
  virtual core::Version version() const = 0;  // optimiser steps taken (skipped ones included)

  // The model as a Hugging Face folder, with the tokenizer files of another. With LoRA it is the
  // merged one, and the adapter goes into `adapter` next to it; a moving average goes into `ema`.
  virtual core::Result<void> save_model(const std::filesystem::path& folder,
                                        const std::filesystem::path& tokenizer_from) const = 0;

  // Writes the trained tensors (f32; with LoRA the adapters), moments, counts, RlState and the
  // moving average as safetensors and JSON into `folder`, which must exist; the caller makes the
  // commit atomic. Load restores the same bits.
  virtual core::Result<void> save_state(const std::filesystem::path& folder) const = 0;
  virtual core::Result<void> load_state(const std::filesystem::path& folder) = 0;
};

}  // namespace troupe::learn
