// The optimiser over the flat buffers of a model or of its trained part, and the global norm of the
// gradient. The team shares elementwise work; sums run in chunks of a fixed size and order, so the
// bits do not depend on the number of threads. The trainer owns the optimiser and calls it from one
// thread.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/learn/optim/element_optimizer.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::learn {

// sqrt of the sum of squares of x[0, count). Sums in double over chunks of kernels::kNormChunk
// elements, then over the chunks in ascending order. Not finite exactly when some value is not.
double global_norm(core::TeamRunner& team, const float* x, std::int64_t count);

// The factor of gradient clipping, as torch.nn.utils.clip_grad_norm_ has it:
// min(1, norm_max / (norm + 1e-6)); 1 when norm_max is 0 (no clipping).
double clip_scale(double norm, double norm_max);

// The name of the first tensor of `store` that holds a value that is not finite; empty when none.
std::string first_nonfinite(core::TeamRunner& team, const model::ParamStore& store);

// Whether `optim.offload` puts the master values and moments of what is trained in `memory` on the
// host: not if they are there anyway, nor with adapters, which take little.
bool offloads(const OptimSettings& optim, const core::Memory& memory);

// A range of elements that is contiguous both in the parameters and in the moments.
struct TrainedRun {
  std::int64_t param = 0, moment = 0, count = 0;
};
// Where the tensors of `trained` lie in `params`, which has all of them: runs in ascending order of
// the moments.
std::vector<TrainedRun> trained_runs(const model::ParamLayout& params,
                                     const model::ParamLayout& trained);

// The optimiser of a store, or of its trained part (element_optimizer.hpp). A frozen tensor has no
// moments and never changes, not even by decay.
class StoreOptimizer {
 public:
  // Makes moments with the layout `trained`, in the memory of `params`. Steps then take stores with
  // the layout of `params`, which has all tensors of `trained` and perhaps more.
  StoreOptimizer(const model::ParamStore& params,
                 const model::ParamLayout& trained,
                 const OptimSettings& optim);

  // One step with the gradient `grads` * `grad_scale`; `grads` has the layout of the moments and is
  // in the team's memory. `params` may be on the host all the same.
  void step(core::TeamRunner& team,
            model::ParamStore& params,
            const model::ParamStore& grads,
            double lr,
            double grad_scale);

  std::int64_t steps() const { return elements_.steps(); }
  void set_steps(std::int64_t steps) { elements_.set_steps(steps); }
  MomentStore& moment(Moment which) { return elements_.moment(which); }

 private:
  const std::int64_t params_size_, trained_size_;
  const std::vector<TrainedRun> runs_;
  ElementOptimizer elements_;
};

}  // namespace troupe::learn
