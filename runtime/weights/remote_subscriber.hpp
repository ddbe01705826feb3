// The engine's side of the weight channel between processes. `fetch` asks the publisher that a
// location names: over its Unix socket when both are on one host and that answers, so that the
// weights are read where they lie, else by TCP into a buffer of this process. It blocks, so it has
// a thread of its own; the intakes that it returns are used on the engine's thread, one at a time.
// Memory: two sets of panels; for TCP the weights once more in f32, twice while two intakes live.
#pragma once

#include "runtime/weights/flat_intake.hpp"
#include "runtime/weights/mapped_memory.hpp"
#include "runtime/weights/shadow_pool.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <memory>
#include <mutex>
#include <string>

namespace troupe::weights {

class RemoteWeightSubscriber final : public WeightSubscriber {
 public:
  // `dtype`: of the panels that versions are packed into; they travel as f32.
  explicit RemoteWeightSubscriber(const model::ModelSpec& spec,
                                  kernels::PanelDtype dtype = kernels::PanelDtype::kF32,
                                  std::string host_id = own_host_id());

  core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                    const WeightLocation& location,
                                                    core::Duration deadline) override;

 private:
  using Staging = core::Buffer<float>;
  core::Result<FlatWeights> from_memory(OwnedFd socket,
                                        core::Version at_least,
                                        const WeightLocation& location,
                                        core::TimePoint until);
  core::Result<FlatWeights> from_stream(OwnedFd socket,
                                        core::Version at_least,
                                        const WeightLocation& location,
                                        core::TimePoint until);
  std::shared_ptr<Staging> staging();

  const SnapshotShape shape_;
  const std::string host_id_;
  ShadowPool shadows_;
  MappingSet mappings_;
  std::mutex mutex_;
  std::shared_ptr<Staging> staging_;
};

}  // namespace troupe::weights
