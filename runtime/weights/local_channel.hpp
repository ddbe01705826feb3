// The weight channel of one process; both sides hold the same object. Where trainer and engines
// compute in one memory, engines take the very panels that the trainer packed, and nothing is
// copied. Where they do not (a GPU and the processor), `publish` copies the master weights to the
// host, on the thread of their memory, and an intake packs them where its engine computes, in
// slices between steps. Thread-safe. Keeps the newest version only; whoever uses an older one keeps
// it alive.
#pragma once

#include "runtime/weights/weight_channel.hpp"

#include <mutex>
#include <optional>

namespace troupe::weights {

class LocalWeightChannel final : public WeightPublisher, public WeightSubscriber {
 public:
  // Passes panels by pointer.
  LocalWeightChannel() = default;
  // Passes a copy on the host; `packed_as`: type of the panels that intakes pack it into.
  explicit LocalWeightChannel(kernels::PanelDtype packed_as) : packed_as_(packed_as) {}

  // The location is empty: there is one channel.
  core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                    const WeightLocation& location,
                                                    core::Duration patience) override;

 private:
  class Intake;
  // Holds either the panels or the host copy.
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
