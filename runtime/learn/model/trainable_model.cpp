#include "runtime/learn/model/trainable_model.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/model/offloaded_weights.hpp"
#include "runtime/learn/model/rank_stepper.hpp"
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/learn/optim/schedule.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/ranks/sharded_weights.hpp"
#include "runtime/learn/state/state_counts.hpp"
#include "runtime/learn/state/state_parts.hpp"
#include "runtime/model/device_check.hpp"
#include "runtime/model/peft_folder.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace troupe::learn {
namespace {

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
  TROUPE_TRY(require(std::isfinite(optim.adam.lr) && optim.adam.lr >= 0, section + ".adam.lr",
                     "at least 0"));
  TROUPE_TRY(require(is_beta(optim.adam.betas[0]) && is_beta(optim.adam.betas[1]),
                     section + ".adam.betas", "at least 0 and below 1 as 32-bit numbers"));
  TROUPE_TRY(require(static_cast<float>(optim.adam.eps) > 0, section + ".adam.eps", "above 0"));
  TROUPE_TRY(require(optim.sgd.momentum >= 0 && optim.sgd.momentum < 1, section + ".sgd.momentum",
                     "at least 0 and below 1"));
  TROUPE_TRY(require(optim.muon.momentum >= 0 && optim.muon.momentum < 1,
                     section + ".muon.momentum", "at least 0 and below 1"));
  TROUPE_TRY(require(optim.muon.lr >= 0, section + ".muon.lr", "at least 0"));
  TROUPE_TRY(require(optim.lr_decay_ratio > 0 && optim.lr_decay_ratio <= 1,
                     section + ".lr_decay_ratio", "above 0 and at most 1"));
  TROUPE_TRY(require(optim.lr_cycles >= 1, section + ".lr_cycles", "at least 1"));
  TROUPE_TRY(require(optim.max_norm >= 0, section + ".max_norm", "at least 0"));
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

// Whether this model can be trained so in that memory.
core::Result<void> check_training(const model::ModelSpec& spec,
                                  const OptimSettings& optim,
                                  const core::Memory& memory,
                                  const std::string& key) {
  TROUPE_TRY(check_optim(optim, key));
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
  TROUPE_TRY(model::check_memory(spec, memory, key));
  if (optim.optim->muon && offloads(optim, memory)) {
    return core::fail(ErrorCode::kConfig, "train.offload: muon computes on the device",
                      "leave --train.offload at false, or give --" + key + ".optim adamw");
  }
  return {};
}

// Whether a model with these adapters (null: none) and this optimiser can go on from a state. Kinds
// of AdamW read each other's moments.
core::Result<void> check_goes_on(const std::filesystem::path& folder,
                                 const StateCounts& counts,
                                 const model::Lora* lora,
                                 const OptimKind& own,
                                 const std::string& key) {
  if (lora != nullptr && counts.base_crc != lora->base_crc()) {
    return core::fail(
        ErrorCode::kData, folder.string() + " holds adapters of other base weights than these",
        "resume with the model that the run began with, --" + key + ".model_name_or_path");
  }
  const auto kinds = OptimKind::all();
  const bool reads = std::any_of(kinds.begin(), kinds.end(), [&](const OptimKind& one) {
    return one.name == counts.optim && one.adam == own.adam && one.muon == own.muon;
  });
  if (reads) return {};
  return core::fail(ErrorCode::kData,
                    folder.string() + " holds the state of " + counts.optim + ", which " +
                        std::string(own.name) + " cannot go on with",
                    "give --" + key + ".optim " + counts.optim);
}

}  // namespace

core::Result<std::unique_ptr<TrainableModel>> TrainableModel::create(
    std::unique_ptr<model::ParamStore> master,
    const OptimSettings& optim,
    std::int64_t total_steps,
    core::TeamRunner& team,
    std::string key) {
  TROUPE_TRY(check_training(master->spec(), optim, team.memory(), key));
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
               optim.gradient_checkpointing_enable,
               lora_.get(),
               offloaded_.get()),
      panels_(optim.panels, team) {
  // Applies to the whole process. LibTorch's own threads would change the order of its sums and
  // compete with the team for cores.
  at::set_num_threads(1);
  if (lora_) lora_->merge(team_, *master_);  // changes no weight yet, packs the adapters
}

TrainableModel::~TrainableModel() = default;

std::shared_ptr<const model::PackedWeights> TrainableModel::pass_weights() {
  if (!divided_) return packed();
  panels_.release();  // those of all weights, if they were wanted
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
  return panels_.of(*master_, version_);
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
  TROUPE_TRY(stepper_->apply(values(), report.lr, clip_scale(report.grad_norm, optim_.max_norm)));
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

core::Result<void> TrainableModel::write_once(
    const std::function<core::Result<void>()>& write) const {
  if (!ranks_) return write();
  return ranks_->agree(ranks_->rank() == 0 ? write() : core::Result<void>());
}

core::Result<void> TrainableModel::gather() const {
  return divided_ ? divided_->gather_all() : core::Result<void>();
}

core::Result<void> TrainableModel::each_part(const See& see) const {
  TROUPE_CHECK(divided_, "divided weights");
  return divided_->each_part(see);
}

StateLayouts TrainableModel::layouts() const {
  // At stage 3 the gradient has room for one part alone.
  return {values().layout(), divided_ ? values().layout() : stepper_->working().layout(),
          optim_.optim->adam};
}

HeldState TrainableModel::held() const {
  std::array<HeldPart, 3> parts;
  for (const StatePart part : layouts().parts()) {
    HeldPart& of = parts[index_of(part)];
    if (part == StatePart::kWeights) {
      of.numbers =
          divided_ ? held_in(divided_->own()) : held_in(lora_ ? lora_->values() : *master_);
    } else {
      of.numbers =
          stepper_->held(part == StatePart::kFirstMoment ? Moment::kFirst : Moment::kSecond);
    }
    of.whole = parted() == nullptr || (part == StatePart::kWeights && !divided_);
  }
  return {layouts(), parts, parted(), team_};
}

core::Result<void> TrainableModel::save_state(const std::filesystem::path& folder) const {
  HeldState::Files files;
  StateCounts counts{.version = version_,
                     .adam_steps = stepper_->adam_steps(),
                     .skipped_in_row = skipped_in_row_,
                     .lanes = lanes(),
                     .ranks = parted() != nullptr ? parted()->size() : 0,
                     .optim = std::string(optim_.optim->name)};
  if (lora_) counts.base_crc = lora_->base_crc();
  if (counts.ranks > 0) TROUPE_TRY_SET(files, held().write(folder, version_));
  return write_once([&]() -> core::Result<void> {
    TROUPE_TRY(remove_other_parts(folder, counts.ranks));
    if (counts.ranks == 0) TROUPE_TRY_SET(files, held().write(folder, version_));
    TROUPE_TRY(write_counts(folder, counts));
    return store::note_written(folder, files);
  });
}

core::Result<void> TrainableModel::save_model(const model::ModelFolder& folder) const {
  if (!divided_) return write_once([&] { return model::write_model(*master_, folder, true); });
  std::optional<model::ModelWriter> writer;
  core::Result<void> going;  // of rank 0, which takes part to the end all the same
  if (ranks_->rank() == 0) {
    auto begun = model::ModelWriter::begin(master_->spec(), master_->shared_layout(), folder);
    if (begun) writer.emplace(std::move(*begun));
    if (!begun) going = begun.failure();
  }
  TROUPE_TRY(divided_->bring_to_first([&](core::Range place, const float* numbers) {
    if (going) going = writer->add(place, numbers);
  }));
  return write_once([&]() -> core::Result<void> {
    TROUPE_TRY(going);
    return writer->commit(true);
  });
}

core::Result<void> TrainableModel::load_state(const std::filesystem::path& folder) {
  const core::Result<void> read = read_state(folder);
  return ranks_ ? ranks_->all_well(read, "load the state in " + folder.string()) : read;
}

// Checks all files before it changes anything.
core::Result<void> TrainableModel::read_state(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(counts, read_counts(folder));
  TROUPE_TRY(check_goes_on(folder, counts, lora_.get(), *optim_.optim, key_));
  TROUPE_TRY_ASSIGN(state, counts.ranks == 0
                               ? open_whole_state(folder, layouts())
                               : open_parts(folder, counts.ranks, counts.version, layouts()));
  if (divided_) divided_->let_go();
  TROUPE_TRY(held().read(*state));
  stepper_->set_adam_steps(counts.adam_steps);
  version_ = counts.version;
  skipped_in_row_ = counts.skipped_in_row;
  if (lora_) lora_->merge(team_, *master_);
  panels_.forget();  // of other weights, perhaps under the same version
  return {};
}

}  // namespace troupe::learn
