#include "runtime/weights/local_channel.hpp"

#include "runtime/core/check.hpp"
#include "runtime/model/weight_packer.hpp"

#include <string>
#include <utility>

namespace troupe::weights {

class LocalWeightChannel::Intake final : public WeightIntake {
 public:
  Intake(Weights weights, std::optional<kernels::PanelDtype> packed_as)
      : weights_(std::move(weights)), packed_as_(packed_as) {}

  core::Version version() const override { return weights_.version; }
  bool verified() const override { return true; }
  core::Result<bool> advance(core::TeamRunner& team, core::Duration budget) override {
    if (weights_.panels != nullptr) return true;
    if (!packer_) {
      packed_ =
          std::make_shared<model::PackedWeights>(weights_.flat->spec(), *packed_as_, team.memory());
      packer_.emplace(*packed_, weights_.flat->data(), weights_.version);
    }
    if (!packer_->advance(team, budget)) return false;
    weights_.panels = std::move(packed_);
    return true;
  }
  std::shared_ptr<const model::PackedWeights> take() override {
    TROUPE_CHECK(weights_.panels != nullptr, "panels that are not done, or taken twice");
    return std::move(weights_.panels);
  }

 private:
  Weights weights_;
  const std::optional<kernels::PanelDtype> packed_as_;
  std::shared_ptr<model::PackedWeights> packed_;
  std::optional<model::WeightPacker> packer_;
};

core::Result<WeightLocation> LocalWeightChannel::take(const Offer& offer) {
  Weights weights{offer.version, nullptr, nullptr};
  if (packed_as_) {
    TROUPE_CHECK(offer.master != nullptr, "an offer by copy without master weights");
    weights.flat = std::make_shared<const model::ParamStore>(offer.master->to(core::host_memory()));
  } else {
    TROUPE_CHECK(offer.packed != nullptr, "an offer by pointer without panels");
    weights.panels = offer.packed();
    TROUPE_CHECK(weights.panels != nullptr && weights.panels->version() == offer.version,
                 "panels of another version than the offer names");
  }
  const std::lock_guard lock(mutex_);
  newest_ = std::move(weights);
  return WeightLocation{};
}

core::Result<std::unique_ptr<WeightIntake>> LocalWeightChannel::fetch(core::Version at_least,
                                                                      const WeightLocation&,
                                                                      core::Duration) {
  const std::lock_guard lock(mutex_);
  if (!newest_ || newest_->version < at_least) {
    return core::fail(core::ErrorCode::kNotFound,
                      "version " + std::to_string(at_least) + " of the weights is not here",
                      (newest_ ? "the newest is " + std::to_string(newest_->version)
                               : std::string("none was published")));
  }
  return std::unique_ptr<WeightIntake>(std::make_unique<Intake>(*newest_, packed_as_));
}

}  // namespace troupe::weights
