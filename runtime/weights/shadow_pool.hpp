// Provides the panels into which an engine's new weights are packed. Keeps two sets and reuses
// them, because the first touch of fresh memory costs more than packing. `take` never returns
// panels that someone still holds. Thread-safe. Bound: two sets are kept; more exist only while
// someone holds older ones.
#pragma once

#include "runtime/model/packed.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace troupe::weights {

class ShadowPool {
 public:
  explicit ShadowPool(model::ModelSpec spec,
                      kernels::PanelDtype dtype = kernels::PanelDtype::kF32,
                      core::Memory& memory = core::host_memory())
      : spec_(std::move(spec)), dtype_(dtype), memory_(memory) {}
  core::Memory& memory() const { return memory_; }
  // Panels that nobody else holds, with all their pages in memory.
  std::shared_ptr<model::PackedWeights> take();

 private:
  const model::ModelSpec spec_;
  const kernels::PanelDtype dtype_;
  core::Memory& memory_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<model::PackedWeights>> kept_;
};

}  // namespace troupe::weights
