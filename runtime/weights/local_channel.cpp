// Panels by pointer: the intake is done at once.
#include "runtime/weights/local_channel.hpp"

#include "runtime/core/check.hpp"
#include "runtime/weights/version_order.hpp"

#include <optional>
#include <utility>

namespace troupe::weights {
namespace {

class LocalIntake final : public WeightIntake {
 public:
  explicit LocalIntake(std::shared_ptr<const model::PackedWeights> weights)
      : version_(weights->version()), weights_(std::move(weights)) {}
  core::Version version() const override { return version_; }
  bool verified() const override { return true; }
  core::Result<bool> advance(core::TeamRunner&, core::Duration) override { return true; }
  std::shared_ptr<const model::PackedWeights> take() override {
    TROUPE_CHECK(weights_ != nullptr, "weights taken twice");
    return std::move(weights_);
  }

 private:
  const core::Version version_;
  std::shared_ptr<const model::PackedWeights> weights_;
};

}  // namespace

core::Result<WeightLocation> LocalWeightChannel::publish(const Offer& offer) {
  TROUPE_CHECK(offer.packed != nullptr, "an offer to the local channel without panels");
  std::lock_guard lock(mutex_);
  if (newest_ && offer.version < newest_->version()) {
    return older_than_newest(offer.version, newest_->version());
  }
  if (newest_ && offer.version == newest_->version()) return WeightLocation{};
  auto packed = offer.packed();
  TROUPE_CHECK(packed != nullptr && packed->version() == offer.version,
               "panels of another version than the offer names");
  newest_ = std::move(packed);
  return WeightLocation{};
}

core::Result<std::unique_ptr<WeightIntake>> LocalWeightChannel::fetch(core::Version at_least,
                                                                      const WeightLocation&,
                                                                      core::Duration) {
  std::lock_guard lock(mutex_);
  if (!newest_ || newest_->version() < at_least) {
    return version_not_here(at_least, newest_ ? std::optional(newest_->version()) : std::nullopt);
  }
  return std::unique_ptr<WeightIntake>(std::make_unique<LocalIntake>(newest_));
}

}  // namespace troupe::weights
