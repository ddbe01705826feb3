#include "runtime/weights/weight_channel.hpp"

#include <string>

namespace troupe::weights {

core::Result<WeightLocation> WeightPublisher::publish(const Offer& offer) {
  if (published_ && offer.version < *published_) {
    return core::fail(core::ErrorCode::kInvalidArgument,
                      "version " + std::to_string(offer.version) +
                          " of the weights is older than version " + std::to_string(*published_) +
                          ", which was published before it");
  }
  if (published_ != offer.version) {
    TROUPE_TRY_SET(location_, take(offer));
    published_ = offer.version;
  }
  return location_;
}

}  // namespace troupe::weights
