// The weight channel inside one process; publisher and subscribers share one object. If trainer and
// engines compute in the same memory, engines use the panels that the trainer packed, and nothing
// is copied. If not (a GPU and the CPU), `publish` copies the master weights to the host, and each
// intake packs them into its engine's memory, in slices between steps. `fetch` is safe on any
// thread. Keeps the newest version only; users of an older one keep it alive.
#pragma once

#include "runtime/weights/weight_channel.hpp"

#include <mutex>
#include <optional>

namespace troupe::weights {

class LocalWeightChannel final : public WeightPublisher, public WeightSubscriber {
 public:
  // Passes panels by pointer.
  LocalWeightChannel() = default;
  // Passes a copy on the host, which intakes pack into panels of type `packed_as`.
  explicit LocalWeightChannel(kernels::PanelDtype packed_as) : packed_as_(packed_as) {}

  // Returns at once. Ignores `location`, which is empty because there is only this channel.
  core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                    const WeightLocation& location,
                                                    core::Duration patience) override;

 private:
  class Intake;
  // Holds either `panels` or `flat`, the copy on the host.
  struct Weights {
    core::Version version = 0;
    std::shared_ptr<const model::PackedWeights> panels;
    std::shared_ptr<const model::ParamStore> flat;
  };
  core::Result<WeightLocation> take(const Offer& offer) override;

  const std::optional<kernels::PanelDtype> packed_as_;
  std::mutex mutex_;
  std::optional<Weights> newest_;
};

}  // namespace troupe::weights
