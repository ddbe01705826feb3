// The weight channel of one process whose trainer and engines compute in different memories, as a
// GPU and the processor: `publish` copies the master weights to the host, an intake packs them
// where its engine computes, in slices between steps. Thread-safe. Keeps the newest version only;
// an intake under way keeps its own. Memory: the weights in f32 on the host, once for each version
// held.
#pragma once

#include "runtime/weights/weight_channel.hpp"

#include <memory>
#include <mutex>

namespace troupe::weights {

class CopiedWeightChannel final : public WeightPublisher, public WeightSubscriber {
 public:
  // `dtype`: of the panels that versions are packed into.
  explicit CopiedWeightChannel(kernels::PanelDtype dtype) : dtype_(dtype) {}

  // Reads `offer.master`, on the thread of its memory. The location is empty: there is one channel.
  core::Result<WeightLocation> publish(const Offer& offer) override;
  core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                    const WeightLocation& location,
                                                    core::Duration patience) override;

 private:
  struct Copy {
    core::Version version = 0;
    std::shared_ptr<const model::ParamStore> weights;  // null: none yet
  };

  const kernels::PanelDtype dtype_;
  std::mutex mutex_;
  Copy newest_;
};

}  // namespace troupe::weights
