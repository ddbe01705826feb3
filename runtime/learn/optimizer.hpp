// AdamW over the flat buffers of a model or of its trained part, and the global norm of the
// gradient. The team shares elementwise work; sums run in chunks of a fixed size and order, so the
// bits do not depend on the number of threads. The trainer owns the optimiser and calls it from one
// thread.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/settings.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
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

// The kernel's numbers for step `step`, counted from 1, without its pointers.
kernels::AdamW adamw_terms(const OptimSettings& optim,
                           std::int64_t step,
                           double lr,
                           double grad_scale);

// Whether `optim.offload` puts the master values and moments of what is trained in `memory` on the
// host: not if they are there anyway, nor with adapters, which take little.
bool offloads(const OptimSettings& optim, const core::Memory& memory);

// One step of the processor's AdamW, which has the bits of a device's. `terms.grad` is in `memory`
// and comes in pieces, the rest is on the host. Runs on the caller's thread alone.
void adamw_on_host(core::Memory& memory, const kernels::AdamW& terms, std::int64_t count);

// A range of elements that is contiguous both in the parameters and in the moments.
struct TrainedRun {
  std::int64_t param = 0, moment = 0, count = 0;
};
// Where the tensors of `trained` lie in `params`, which has all of them: runs in ascending order of
// the moments.
std::vector<TrainedRun> trained_runs(const model::ParamLayout& params,
                                     const model::ParamLayout& trained);

enum class Moment { kFirst, kSecond };

// Adam with decoupled weight decay (Loshchilov & Hutter 2019), like torch.optim.AdamW with all
// parameters in one group: decay applies to every trained tensor, norms and biases included. A
// frozen tensor has no moments and never changes, not even by decay. Per element, at step t:
//   p -= lr wd p;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
//   p -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps)
class AdamW {
 public:
  // Makes moments with the layout `trained`, in the memory of `params`. Steps then take stores with
  // the layout of `params`, which has all tensors of `trained` and perhaps more.
  AdamW(const model::ParamStore& params,
        const std::shared_ptr<const model::ParamLayout>& trained,
        const OptimSettings& optim);

  // One step with the gradient `grads` * `grad_scale`; `grads` has the layout of the moments and is
  // in the team's memory. `params` may be on the host all the same.
  void step(core::TeamRunner& team,
            model::ParamStore& params,
            const model::ParamStore& grads,
            double lr,
            double grad_scale);

  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  model::ParamStore& moment(Moment which) { return which == Moment::kFirst ? m_ : v_; }

 private:
  OptimSettings optim_;
  const std::int64_t params_size_;
  std::vector<TrainedRun> runs_;
  model::ParamStore m_;
  model::ParamStore v_;
  std::int64_t steps_ = 0;  // applied steps; a skipped one does not count
};

}  // namespace troupe::learn
