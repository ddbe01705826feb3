// Flat on the host in between.
#include "runtime/weights/copied_channel.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/weight_packer.hpp"
#include "runtime/weights/version_order.hpp"

#include <optional>
#include <utility>

namespace troupe::weights {
namespace {

class CopiedIntake final : public WeightIntake {
 public:
  CopiedIntake(core::Version version,
               std::shared_ptr<const model::ParamStore> weights,
               kernels::PanelDtype dtype)
      : version_(version), weights_(std::move(weights)), dtype_(dtype) {}

  core::Version version() const override { return version_; }
  bool verified() const override { return true; }
  core::Result<bool> advance(core::TeamRunner& team, core::Duration budget) override {
    if (!packer_) {
      panels_ = std::make_shared<model::PackedWeights>(weights_->spec(), dtype_, team.memory());
      packer_.emplace(*panels_, weights_->data(), version_);
    }
    return packer_->advance(team, budget);
  }
  std::shared_ptr<const model::PackedWeights> take() override {
    TROUPE_CHECK(packer_ && packer_->done() && panels_ != nullptr,
                 "panels that are not done, or taken twice");
    return std::move(panels_);
  }

 private:
  const core::Version version_;
  const std::shared_ptr<const model::ParamStore> weights_;
  const kernels::PanelDtype dtype_;
  std::shared_ptr<model::PackedWeights> panels_;
  std::optional<model::WeightPacker> packer_;
};

}  // namespace

core::Result<WeightLocation> CopiedWeightChannel::publish(const Offer& offer) {
  TROUPE_CHECK(offer.master != nullptr, "an offer to the copied channel without master weights");
  {
    const std::lock_guard lock(mutex_);
    if (newest_.weights && offer.version < newest_.version)
      return older_than_newest(offer.version, newest_.version);
    if (newest_.weights && offer.version == newest_.version) return WeightLocation{};
  }
  Copy copy{offer.version,
            std::make_shared<const model::ParamStore>(offer.master->to(core::host_memory()))};
  const std::lock_guard lock(mutex_);
  newest_ = std::move(copy);
  return WeightLocation{};
}

core::Result<std::unique_ptr<WeightIntake>> CopiedWeightChannel::fetch(core::Version at_least,
                                                                       const WeightLocation&,
                                                                       core::Duration) {
  const std::lock_guard lock(mutex_);
  if (!newest_.weights || newest_.version < at_least) {
    return version_not_here(at_least,
                            newest_.weights ? std::optional(newest_.version) : std::nullopt);
  }
  return std::unique_ptr<WeightIntake>(
      std::make_unique<CopiedIntake>(newest_.version, newest_.weights, dtype_));
}

}  // namespace troupe::weights
