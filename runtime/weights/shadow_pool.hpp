// The panels that new versions are packed into: two in turn, kept between versions because the
// first touch of fresh memory costs more than packing. Panels that anyone still holds are never
// given out. Thread-safe. Bound: two are kept; more exist only while others hold on to older ones.
#pragma once

#include "runtime/model/packed.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace troupe::weights {

class ShadowPool {
 public:
  explicit ShadowPool(model::ModelSpec spec, kernels::PanelDtype dtype = kernels::PanelDtype::kF32)
      : spec_(std::move(spec)), dtype_(dtype) {}
  // Panels that nobody else holds, with all their pages in memory.
  std::shared_ptr<model::PackedWeights> take();

 private:
  const model::ModelSpec spec_;
  const kernels::PanelDtype dtype_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<model::PackedWeights>> kept_;
};

}  // namespace troupe::weights
