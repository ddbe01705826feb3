// A piece of the trained weights as neighbours in memory, in the order of their gradients. If all
// weights are trained it is the weights themselves; if some are frozen it is a copy of those
// between that can be written back. Used by a rank's stepper, in the memory of the team.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/range.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/model/params.hpp"

#include <vector>

namespace troupe::learn {

class TrainedWindow {
 public:
  TrainedWindow(const model::ParamLayout& params, const model::ParamLayout& trained)
      : runs_(trained_runs(params, trained)), whole_(params.total == trained.total) {}

  // The elements `place` of the trained weights, read from `params`; valid until the next call.
  float* read(core::TeamRunner& team, model::ParamStore& params, core::Range place);
  // Makes a change of what read() returned a change of `params`.
  void write(core::TeamRunner& team, model::ParamStore& params, core::Range place);

 private:
  void copy(core::TeamRunner& team, model::ParamStore& params, core::Range place, bool read);

  const std::vector<TrainedRun> runs_;
  const bool whole_;  // the layouts are the same
  core::Buffer<float> copy_;
};

}  // namespace troupe::learn
