// The critic's loss of one micro-batch (docs/algorithms.md, "Critic"): half the squared error of
// the value, or of the value clipped to the neighbourhood of the old one, whichever is larger.
// Computed in f64 on ATen tensors with autograd. Stateless; runs on the trainer's thread.
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
  double weight = 0;            // share of a token in the update's mean
};

struct ValueStats {
  std::int64_t tokens = 0;
  std::int64_t clipped = 0;  // tokens whose clipped error was the larger: no gradient
};

// The loss, sum over tokens of weight * 0.5 * max((V - G)^2, (V_old + clip(V - V_old, +-clip) -
// G)^2), a scalar in f64; clip 0 leaves the second away. `values` [tokens] f32 or f64.
at::Tensor value_loss(double clip,
                      const ValueBatch& batch,
                      const at::Tensor& values,
                      ValueStats& stats);

// 1 - Var(G - V) / Var(G), population variances: 1 is a perfect critic, 0 one that knows the mean
// alone. Not a number when all returns are equal.
double explained_variance(std::span<const double> values, std::span<const double> returns);

}  // namespace troupe::learn
