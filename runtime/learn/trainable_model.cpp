#include "runtime/learn/trainable_model.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/learn/offloaded_weights.hpp"
#include "runtime/learn/optimizer.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/ranks/rank_stepper.hpp"
#include "runtime/learn/ranks/sharded_weights.hpp"
#include "runtime/learn/schedule.hpp"
#include "runtime/model/device_check.hpp"
#include "runtime/model/peft_folder.hpp"

#include <ATen/Parallel.h>

#include <atomic>
#include <cmath>

namespace troupe::learn {
namespace {

using core::ErrorCode;

constexpr std::int64_t kLanes_max = 1024;

core::Result<void> check_ranks(const OptimSettings& optim) {
  TROUPE_TRY(require(optim.ranks.zero_stage >= 0 && optim.ranks.zero_stage <= kZeroStage_max,
                     "train.zero_stage", "0, 1, 2 or 3"));
  if (count_of(optim.ranks) <= optim.lanes) return {};
  return core::fail(ErrorCode::kConfig,
                    "train.lanes is " + std::to_string(optim.lanes) + ", and " +
                        std::to_string(count_of(optim.ranks)) +
                        " ranks train the model: each needs a lane at least",
                    "raise --train.lanes in a new run, or start fewer ranks");
}

// Whether ranks divide the weights.
bool divides(const OptimSettings& optim) {
  return count_of(optim.ranks) > 1 && optim.ranks.zero_stage == 3 && optim.trained.everything();
}

std::unique_ptr<ShardedWeights> divided_weights(RankGroup* group,
                                                const OptimSettings& optim,
                                                model::ParamStore& master,
                                                core::TeamRunner& team) {
  if (group == nullptr || !divides(optim)) return nullptr;
  return std::make_unique<ShardedWeights>(
      *group, master, optim.panels, team,
      offloads(optim, team.memory()) ? core::host_memory() : team.memory());
}

std::unique_ptr<RankGroup> group_of(const Ranks& ranks) {
  if (count_of(ranks) == 1) return nullptr;
  return std::make_unique<RankGroup>(*ranks.gang);
}

core::Result<void> check_optim(const OptimSettings& optim, const std::string& section) {
  // Betas are used as f32: one that rounds to 1 would never forget, and divide by zero.
  const auto is_beta = [](double beta) { return beta >= 0 && static_cast<float>(beta) < 1.0f; };
  TROUPE_TRY(require(std::isfinite(optim.lr) && optim.lr >= 0, section + ".adam.lr", "at least 0"));
  TROUPE_TRY(require(is_beta(optim.beta1) && is_beta(optim.beta2), section + ".adam.betas",
                     "at least 0 and below 1 as 32-bit numbers"));
  TROUPE_TRY(require(static_cast<float>(optim.eps) > 0, section + ".adam.eps", "above 0"));
  TROUPE_TRY(require(optim.momentum >= 0 && optim.momentum < 1, section + ".sgd.momentum",
                     "at least 0 and below 1"));
  TROUPE_TRY(require(optim.muon.momentum >= 0 && optim.muon.momentum < 1,
                     section + ".muon.momentum", "at least 0 and below 1"));
  TROUPE_TRY(require(optim.muon.lr >= 0, section + ".muon.lr", "at least 0"));
  TROUPE_TRY(require(optim.lr_decay_ratio > 0 && optim.lr_decay_ratio <= 1,
                     section + ".lr_decay_ratio", "above 0 and at most 1"));
  TROUPE_TRY(require(optim.lr_cycles >= 1, section + ".lr_cycles", "at least 1"));
  TROUPE_TRY(require(optim.grad_norm_max >= 0, section + ".max_norm", "at least 0"));
  TROUPE_TRY(require(optim.lanes >= 1 && optim.lanes <= kLanes_max, "train.lanes",
                     "at least 1 and at most 1024"));
  TROUPE_TRY(check_ranks(optim));
  return require(std::isfinite(optim.aux_loss_coef) && optim.aux_loss_coef >= 0,
                 section + ".aux_loss_coef", "at least 0");
}

std::unique_ptr<model::Lora> fresh_adapters(
    const model::ParamStore& master,
    const std::shared_ptr<const model::ParamLayout>& trained,
    const model::TrainedSet& set) {
  if (set.lora.rank == 0) return nullptr;
  const double scale = set.lora.alpha / static_cast<double>(set.lora.rank);
  auto lora = std::make_unique<model::Lora>(master, trained, scale);
  lora->start(set.seed);
  return lora;
}

}  // namespace

core::Result<std::unique_ptr<TrainableModel>> TrainableModel::create(
    std::unique_ptr<model::ParamStore> master,
    const OptimSettings& optim,
    std::int64_t total_steps,
    core::TeamRunner& team,
    std::string key) {
  TROUPE_TRY(check_optim(optim, key));
  const model::ModelSpec spec = master->spec();
  if (optim.aux_loss_coef > 0 && spec.moe.sparse_layers(spec.layers) == 0) {
    return core::fail(ErrorCode::kConfig,
                      key + ".aux_loss_coef balances the experts of a model, and " +
                          spec.architecture + " as configured has none",
                      "leave --" + key + ".aux_loss_coef at 0, or train a mixture of experts");
  }
  if (optim.freeze_pad_embedding && model::pad_token_of(spec) < 0) {
    return core::fail(ErrorCode::kConfig,
                      "--actor.freeze_pad_embedding: the model's config.json has no pad_token_id",
                      "leave the key out, or name the token there");
  }
  TROUPE_TRY(model::check_memory(spec, team.memory(), key));
  if (optim.kind->muon && offloads(optim, team.memory())) {
    return core::fail(ErrorCode::kConfig, "train.offload: muon computes on the device",
                      "leave --train.offload at false, or give --" + key + ".optim adamw");
  }
  core::Memory& memory =
      divides(optim) || offloads(optim, team.memory()) ? core::host_memory() : team.memory();
  if (&master->memory() != &memory)
    master = std::make_unique<model::ParamStore>(master->to(memory));
  auto trained = master->shared_layout();
  if (!optim.trained.everything()) {
    TROUPE_TRY_SET(trained, model::trained_layout(master->spec(), optim.trained, key));
  }
  TROUPE_TRY(check_param_groups(optim.groups, *trained, key + ".param_groups"));
  return std::unique_ptr<TrainableModel>(new TrainableModel(
      std::move(master), std::move(trained), optim, total_steps, team, std::move(key)));
}

TrainableModel::TrainableModel(std::unique_ptr<model::ParamStore> master,
                               std::shared_ptr<const model::ParamLayout> trained,
                               const OptimSettings& optim,
                               std::int64_t total_steps,
                               core::TeamRunner& team,
                               std::string key)
    : optim_(optim),
      team_(team),
      key_(std::move(key)),
      master_(std::move(master)),
      lora_(fresh_adapters(*master_, trained, optim.trained)),
      trained_size_(trained->total),
      ranks_(group_of(optim.ranks)),
      divided_(divided_weights(ranks_.get(), optim, *master_, team)),
      offloaded_(!divided_ && offloads(optim, team.memory())
                     ? std::make_unique<OffloadedWeights>(*master_, team)
                     : nullptr),
      stepper_(ranks_ ? rank_stepper(*ranks_, values(), trained, optim, team, divided_.get())
                      : alone_stepper(values(), trained, optim, team)),
      total_steps_(total_steps),
      forward_(team,
               read_back(),
               &stepper_->working(),
               optim.checkpointing,
               lora_.get(),
               offloaded_.get()) {
  // Applies to the whole process. LibTorch's own threads would change the order of its sums and
  // compete with the team for cores.
  at::set_num_threads(1);
  if (lora_) lora_->merge(team_, *master_);  // changes no weight yet, packs the adapters
}

TrainableModel::~TrainableModel() = default;

std::shared_ptr<const model::PackedWeights> TrainableModel::pass_weights() {
  if (!divided_) return packed();
  packed_.reset();  // the panels of all weights, if somebody wanted them
  spare_.reset();
  return divided_->panels(version_);
}

const model::ParamStore& TrainableModel::read_back() const {
  if (divided_) return divided_->values();
  return offloaded_ ? offloaded_->values() : *master_;
}

RankPasses* TrainableModel::passes() const {
  return divided_.get();
}

std::shared_ptr<const model::PackedWeights> TrainableModel::packed() {
  TROUPE_CHECK(!divided_ || divided_->whole(), "gather() makes the weights whole");
  if (packed_ && packed_->version() == version_) return packed_;
  // Refills panels that nobody else holds: the current ones, else the spare ones. Fresh memory
  // would cost a page fault for every page.
  if (!packed_ || packed_.use_count() > 1) {
    std::swap(packed_, spare_);
    if (!packed_ || packed_.use_count() > 1) {
      packed_ =
          std::make_shared<model::PackedWeights>(master_->spec(), optim_.panels, team_.memory());
    }
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // after the last other holder let go
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    packed_->fill(member, *master_, version_);
  });
  return packed_;
}

void TrainableModel::begin_part(const StepPart& part) {
  share_ = part.share;
  forward_.set_balance(optim_.aux_loss_coef * part.share);
  if (optim_.freeze_pad_embedding) forward_.fix_embedding_of(model::pad_token_of(master_->spec()));
}

core::Result<StepReport> TrainableModel::step(const Accumulate& accumulate,
                                              const Describe& describe) {
  stepper_->begin_step();
  StepReport report;
  report.lr = learning_rate(optim_, total_steps_, static_cast<std::int64_t>(version_));
  {
    const auto weights = pass_weights();
    TROUPE_TRY_ASSIGN(loss, accumulate(*weights));
    if (!std::isfinite(loss)) return skip("the loss", describe, report.lr);
    report.loss = loss;
  }
  TROUPE_TRY_SET(report.grad_norm, stepper_->end_step());
  if (!std::isfinite(report.grad_norm)) {
    TROUPE_TRY_ASSIGN(tensor, stepper_->first_nonfinite());
    return skip("the gradient of " + tensor, describe, report.lr);
  }
  TROUPE_TRY(
      stepper_->apply(values(), report.lr, clip_scale(report.grad_norm, optim_.grad_norm_max)));
  if (lora_) lora_->merge(team_, *master_);
  report.applied = true;
  ++version_;
  skipped_in_row_ = 0;
  return report;
}

core::Result<void> TrainableModel::save_adapter(const std::filesystem::path& folder,
                                                const std::string& base) const {
  TROUPE_CHECK(lora_ != nullptr, "an adapter of a model that has none");
  return model::save_adapter(*lora_, optim_.trained.lora, base, folder);
}

core::Result<StepReport> TrainableModel::skip(const std::string& what,
                                              const Describe& describe,
                                              double lr) {
  const core::Version step = version_++;
  ++skipped_in_row_;
  StepReport report;
  report.lr = lr;
  if (skipped_in_row_ <= optim_.nonfinite_steps_max) return report;
  return core::fail(ErrorCode::kNumeric,
                    "optimiser step " + std::to_string(step) + " (" + describe() + "): " + what +
                        " is not finite; " + std::to_string(skipped_in_row_) +
                        " such step(s) in a row, --train.nonfinite_steps_max is " +
                        std::to_string(optim_.nonfinite_steps_max),
                    "lower --" + key_ + ".adam.lr");
}

}  // namespace troupe::learn
