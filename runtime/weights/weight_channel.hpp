// How a new version of the weights reaches the engines. Messages carry the version number alone; the
// panels go through a channel beside them. `LocalWeightChannel` serves roles of one process: the
// engine takes the very panels that the trainer packed, so nothing is copied.
// Thread-safe. Holds the newest version only; an engine that still uses an older one keeps it alive.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/packed.hpp"

namespace troupe::weights {

class WeightChannel {
 public:
  virtual ~WeightChannel() = default;
  // Offers a version. Error: kInvalidArgument when it is older than the one offered before.
  virtual core::Result<void> publish(std::shared_ptr<const model::PackedWeights> weights) = 0;
  // The named version. Error: kNotFound when it was replaced or never came.
  virtual core::Result<std::shared_ptr<const model::PackedWeights>> fetch(
      core::Version version) = 0;
};

class LocalWeightChannel final : public WeightChannel {
 public:
  core::Result<void> publish(std::shared_ptr<const model::PackedWeights> weights) override;
  core::Result<std::shared_ptr<const model::PackedWeights>> fetch(core::Version version) override;

 private:
  std::mutex mutex_;
  std::shared_ptr<const model::PackedWeights> newest_;
};

}  // namespace troupe::weights
