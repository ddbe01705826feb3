// The packed panels of a model's weights, made once per version and shared. Used on the trainer's
// thread. Memory: panels of two versions, while a user holds the older ones.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <memory>

namespace troupe::learn {

class VersionPanels {
 public:
  VersionPanels(kernels::PanelDtype dtype, core::TeamRunner& team) : dtype_(dtype), team_(team) {}

  std::shared_ptr<const model::PackedWeights> of(const model::ParamStore& weights,
                                                 core::Version version);
  // The next ones are made anew, whatever their version.
  void forget() { current_.reset(); }
  // Also gives the memory back.
  void release() {
    current_.reset();
    spare_.reset();
  }

 private:
  const kernels::PanelDtype dtype_;
  core::TeamRunner& team_;
  std::shared_ptr<model::PackedWeights> current_;  // null: not made yet
  std::shared_ptr<model::PackedWeights> spare_;    // an earlier version's, to reuse its memory
};

}  // namespace troupe::learn
