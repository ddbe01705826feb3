// One model under training: master weights, gradients, optimiser, schedule, and the packed
// panels that its forward pass reads; with LoRA also the adapters, which every step merges into the
// master weights. Every trainer (policy, critic, supervised) has one and adds only its loss. Runs
// on its owner's thread; numeric work on the team. Gradients and steps have the same bits for one
// micro-batch plan, whatever the number of threads and of ranks (ranks/ranks.hpp).
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/model/held_state.hpp"
#include "runtime/learn/model/stepper.hpp"
#include "runtime/learn/model/version_panels.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/lora.hpp"
#include "runtime/model/model_writer.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/train_graph.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe::learn {

class OffloadedWeights;
class RankPasses;
class ShardedWeights;

// What one optimiser step did.
struct StepReport {
  bool applied = false;  // false: skipped, something was not finite
  double lr = 0;
  double loss = 0;       // the value that the accumulate function returned
  double grad_norm = 0;  // before clipping; 0 when skipped
};

class TrainableModel {
 public:
  // `total_steps`: optimiser steps of the whole run, for the schedule. `key`: the configuration
  // section that errors name, "actor" or "critic". Gradients and moments exist only for
  // `optim.trained`. They and the weights live in the memory of the team; `master` is moved there
  // if it is elsewhere. At stage 3 master() is on the host, and with `optim.offload` (offloads in
  // optimizer.hpp) it and the moments are. Error kConfig, naming the key: a value that makes no
  // sense, more ranks than lanes, or a model that the device cannot compute.
  static core::Result<std::unique_ptr<TrainableModel>> create(
      std::unique_ptr<model::ParamStore> master,
      const OptimSettings& optim,
      std::int64_t total_steps,
      core::TeamRunner& team,
      std::string key = "actor");
  ~TrainableModel();

  // Runs the forward and backward passes of a step on `weights` by run_parts, called at most once,
  // and returns the loss. Gradients are zero when it is called. If the loss is not finite, the step
  // is skipped.
  using Accumulate = std::function<core::Result<double>(const model::PackedWeights& weights)>;
  // Describes the step's data for the error after too many skipped steps: "update 3, slot 1 to
  // ...".
  using Describe = std::function<std::string()>;

  // One optimiser step: accumulate, clip, the optimiser. A loss or gradient that is not finite
  // skips it and is counted; more than nonfinite_steps_max in a row is kNumeric. Either way
  // version() grows.
  core::Result<StepReport> step(const Accumulate& accumulate, const Describe& describe);

  // Runs the micro-batches of a step, in the plan's order; the gradient of each goes to the next
  // lane (lane_tree.hpp). `run(i)` runs one and returns its figures, which have a `loss`. After the
  // first loss that is not finite none counts: returns the figures up to that one, or of all, which
  // the caller adds in their order. With ranks each runs its lanes, and all get the same figures.
  template <class Figures>
  core::Result<std::vector<Figures>> run_parts(
      std::span<const StepPart> parts,
      const std::function<core::Result<Figures>(std::size_t part)>& run);
  // When optim.aux_loss_coef is not 0: after a forward pass in run_parts, the part's share times
  // its load-balancing loss; the sum over a step's parts is the step's mean loss.
  double aux_loss() const { return share_ * forward_.balance_loss(); }
  double aux_loss_coef() const { return optim_.aux_loss_coef; }

  // Counts `steps` optimiser steps as taken without changing weights: version and schedule advance.
  void pass(core::Version steps = 1) { version_ += steps; }

  // Panels of the current weights, made once per version and shared. At stage 3 after gather().
  std::shared_ptr<const model::PackedWeights> packed();
  // Panels for passes of this model: at stage 3 they are filled part by part.
  std::shared_ptr<const model::PackedWeights> pass_weights();
  // Stage 3: the ranks have divided the weights. Calls `see` for all of them, each once, part by
  // part; all ranks call it.
  bool divided() const { return divided_ != nullptr; }
  using See = std::function<void(core::Range part, const float* flat)>;
  core::Result<void> each_part(const See& see) const;
  // At stage 3 makes master() whole on every rank, until the next pass. Else does nothing.
  core::Result<void> gather() const;

  // The graph that accumulators build their losses on; it adds to the gradients.
  model::TrainForward& forward() { return forward_; }
  core::TeamRunner& team() { return team_; }
  // The current weights; with LoRA the merged ones.
  const model::ParamStore& master() const { return *master_; }
  const model::ModelSpec& spec() const { return master_->spec(); }
  // Sets mean and deviation of a reward model's scores, after training and before it is saved.
  void set_score_scale(double mean, double std) { master_->set_score_scale(mean, std); }
  core::Version version() const { return version_; }  // optimiser steps, skipped ones included

  // Elements of the gradients, and of each moment.
  std::int64_t trained_size() const { return trained_size_; }
  std::int64_t lanes() const { return optim_.lanes; }

  // The ranks that train this model; null: this process alone.
  RankGroup* ranks() const { return ranks_.get(); }
  RankPasses* passes() const;  // of divided weights; null below stage 3
  // Runs `write`, which writes files, on this process if it is alone or rank 0. Returns the same on
  // every rank.
  core::Result<void> write_once(const std::function<core::Result<void>()>& write) const;

  bool has_adapter() const { return lora_ != nullptr; }
  // Writes master() as a Hugging Face folder. All ranks call it: at stage 3 rank 0 gets the weights
  // of the others a piece at a time, and none has all of them.
  core::Result<void> save_model(const model::ModelFolder& folder) const;
  // Writes the adapters as a folder that PEFT opens; `base` names the base model. Only with
  // has_adapter(). `troupe merge-lora` rebuilds master() from it, bit for bit.
  core::Result<void> save_adapter(const std::filesystem::path& folder,
                                  const std::string& base) const;

  // The trained tensors (f32; with LoRA the adapters), moments and counts as safetensors and JSON
  // in `folder`, which must exist; the caller makes the commit atomic. Load restores the same bits.
  // At stages 1 to 3 each rank writes and reads its blocks; else rank 0 writes all.
  core::Result<void> save_state(const std::filesystem::path& folder) const;
  core::Result<void> load_state(const std::filesystem::path& folder);

 private:
  TrainableModel(std::unique_ptr<model::ParamStore> master,
                 std::shared_ptr<const model::ParamLayout> trained,
                 const OptimSettings& optim,
                 std::int64_t total_steps,
                 core::TeamRunner& team,
                 std::string key);
  // The weights that a backward pass reads.
  const model::ParamStore& read_back() const;
  // The tensors that the optimiser changes.
  model::ParamStore& values() { return lora_ ? lora_->values() : *master_; }
  const model::ParamStore& values() const { return lora_ ? lora_->values() : *master_; }
  core::Result<StepReport> skip(const std::string& what, const Describe& describe, double lr);
  void begin_part(const StepPart& part);
  // The ranks that have the state in parts; null: this process, or rank 0, writes all of it.
  RankGroup* parted() const { return optim_.ranks.zero_stage > 0 ? ranks_.get() : nullptr; }
  StateLayouts layouts() const;
  HeldState held() const;
  core::Result<void> read_state(const std::filesystem::path& folder);

  OptimSettings optim_;
  core::TeamRunner& team_;
  const std::string key_;
  std::unique_ptr<model::ParamStore> master_;
  std::unique_ptr<model::Lora> lora_;  // null: the master's own weights are trained
  const std::int64_t trained_size_;
  std::unique_ptr<RankGroup> ranks_;
  std::unique_ptr<ShardedWeights> divided_;      // null: this process has all weights
  std::unique_ptr<OffloadedWeights> offloaded_;  // null: all that a pass reads is where it computes
  std::unique_ptr<Stepper> stepper_;
  const std::int64_t total_steps_;  // of the run, for the learning rate
  model::TrainForward forward_;
  VersionPanels panels_;
  double share_ = 0;  // the micro-batch's share of the step's rows
  core::Version version_ = 0;
  std::int64_t skipped_in_row_ = 0;
};

template <class Figures>
core::Result<std::vector<Figures>> TrainableModel::run_parts(
    std::span<const StepPart> parts,
    const std::function<core::Result<Figures>(std::size_t part)>& run) {
  static_assert(std::is_trivially_copyable_v<Figures>, "figures travel between ranks as bytes");
  std::vector<Figures> all(parts.size());
  StepParts step;
  step.parts = parts;
  step.run = [&](std::size_t part) -> core::Result<void> {
    begin_part(parts[part]);
    TROUPE_TRY_SET(all[part], run(part));
    return {};
  };
  step.finite = [&](std::size_t part) { return std::isfinite(all[part].loss); };
  step.figures = reinterpret_cast<std::byte*>(all.data());
  step.figure_bytes = sizeof(Figures);
  TROUPE_TRY_ASSIGN(count, stepper_->run(step));
  all.resize(count);
  return all;
}

}  // namespace troupe::learn
