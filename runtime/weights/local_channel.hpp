// The weight channel of one process: engines take the very panels that the trainer packed, so
// nothing is copied. Both sides hold the same object.
// Thread-safe. Keeps the newest version only; an engine that still uses an older one keeps it alive.
#pragma once

#include "runtime/weights/weight_channel.hpp"

#include <mutex>

namespace troupe::weights {

class LocalWeightChannel final : public WeightPublisher, public WeightSubscriber {
 public:
  // The location is empty: there is one channel.
  core::Result<WeightLocation> publish(const Offer& offer) override;
  core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                    const WeightLocation& location,
                                                    core::Duration patience) override;

 private:
  std::mutex mutex_;
  std::shared_ptr<const model::PackedWeights> newest_;
};

}  // namespace troupe::weights
