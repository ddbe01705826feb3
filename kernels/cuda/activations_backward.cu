// Gradients of the gated activations, one element per thread. Bound by memory: each element reads
// three numbers and writes two.
#include "kernels/cuda/gates.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/scalar.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <class Gate>
__global__ void __launch_bounds__(kThreads)
    gate_backward_kernel(GateMulBackward g, std::int64_t row_begin, unsigned per_row) {
  const std::int64_t row = row_begin + blockIdx.x / per_row;
  const std::int64_t i = blockIdx.x % per_row * kThreads + threadIdx.x;
  if (i >= g.ffn) return;
  const float gate = g.gate_up[row * g.ldg + i];
  const float up = g.gate_up[row * g.ldg + g.ffn + i];
  const float grad = g.dy[row * g.ldy + i];
  const float denominator = 1.0f + exp_f32(Gate::z(gate));
  const float sigmoid = 1.0f / denominator;
  g.dgate_up[row * g.lddg + i] = ((grad * up) * sigmoid) * Gate::slope(gate, sigmoid);
  g.dgate_up[row * g.lddg + g.ffn + i] = grad * (gate / denominator);
}

}  // namespace

void gate_mul_backward(const GateMulBackward& g, Range rows) {
  const bool silu = g.activation == Activation::kSilu;
  const unsigned per_row = blocks_for(g.ffn, kThreads);
  if (rows.empty()) return;
  launch("gate_mul_backward",
         silu ? gate_backward_kernel<SiluGate> : gate_backward_kernel<GeluGate>,
         blocks_for(rows.size() * per_row, 1), kThreads, 0, g, rows.begin, per_row);
}

}  // namespace troupe::kernels::cuda
