// The critic's loss of one micro-batch: half the squared error of each value, or of the value
// clipped to within `clip` of the old one, whichever is larger. Computed in f64 on ATen tensors
// with autograd. Stateless; runs on the trainer's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace at {
class Tensor;
}

namespace troupe::learn {

// The inputs of the loss for one micro-batch besides the current values V; one entry per token, in
// the order of the values.
struct ValueBatch {
  std::vector<double> old;      // V at the start of the update
  std::vector<double> returns;  // G: the target of V
  double weight = 0;            // weight of every token in the update's mean
};

struct ValueStats {
  std::int64_t tokens = 0;
  std::int64_t clipped = 0;  // tokens whose clipped error was the larger: no gradient
};

// Returns the loss, a scalar in f64: the sum over tokens of weight * 0.5 * max((V - G)^2,
// (V_old + clip(V - V_old, +-clip) - G)^2); with `clip` 0 of weight * 0.5 * (V - G)^2. `values` are
// the V, [tokens] f32 or f64. Adds to `stats`.
at::Tensor value_loss(double clip,
                      const ValueBatch& batch,
                      const at::Tensor& values,
                      ValueStats& stats);

// 1 - Var(G - V) / Var(G), population variances: 1 for a perfect critic, 0 for one that predicts a
// constant. NaN if all returns are equal, or there are none.
double explained_variance(std::span<const double> values, std::span<const double> returns);

}  // namespace troupe::learn
