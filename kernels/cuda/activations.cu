// The gated activations of a feed-forward block, and exp, element by element. Bound by memory.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/gates.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/scalar.cuh"

namespace troupe::kernels::cuda {
namespace {

template <class Gate>
__global__ void __launch_bounds__(kElementThreads) gate_mul_kernel(GateMul g, std::int64_t begin) {
  const std::int64_t row = begin + blockIdx.y;
  const float* const in = g.gate_up + row * g.ldg;
  float* const out = g.y + row * g.ldy;
  for_columns(g.ffn, [&](std::int64_t i) {
    const float gate = in[i];
    out[i] = (gate / (1.0f + exp_f32(Gate::z(gate)))) * in[g.ffn + i];
  });
}

__global__ void __launch_bounds__(kElementThreads)
    exp_kernel(const float* x, float* y, std::int64_t count) {
  for_columns(count, [&](std::int64_t i) { y[i] = exp_f32(x[i]); });
}

}  // namespace

void gate_mul(const GateMul& g, Range rows) {
  const bool silu = g.activation == Activation::kSilu;
  launch_elements("gate_mul", silu ? gate_mul_kernel<SiluGate> : gate_mul_kernel<GeluGate>, g.ffn,
                  rows, g);
}

void exp(const float* x, float* y, std::int64_t count) {
  launch("exp", exp_kernel, blocks_for(count, kElementThreads * kPerThread), kElementThreads, 0, x,
         y, count);
}

}  // namespace troupe::kernels::cuda
