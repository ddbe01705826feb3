// The weight channel inside one process.
#include "runtime/weights/weight_channel.hpp"

#include <string>

namespace troupe::weights {

core::Result<void> LocalWeightChannel::publish(
    std::shared_ptr<const model::PackedWeights> weights) {
  TROUPE_CHECK(weights != nullptr, "weights to publish");
  std::lock_guard lock(mutex_);
  if (newest_ && weights->version() < newest_->version()) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "version " + std::to_string(weights->version()) +
                          " of the weights is older than version " +
                          std::to_string(newest_->version()) + ", which was published before it");
  }
  newest_ = std::move(weights);
  return {};
}

core::Result<std::shared_ptr<const model::PackedWeights>> LocalWeightChannel::fetch(
    core::Version version) {
  std::lock_guard lock(mutex_);
  if (!newest_ || newest_->version() != version) {
    return core::fail(core::ErrorCode::kNotFound,
                      "version " + std::to_string(version) + " of the weights is not here; " +
                          (newest_ ? "the newest is " + std::to_string(newest_->version())
                                   : std::string("none was published")));
  }
  return newest_;
}

}  // namespace troupe::weights
