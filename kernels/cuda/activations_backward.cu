// Gradients of the gated activations, one element a thread. Bound by memory: three numbers are read
// and two written for each.
#include "kernels/cuda/backward.cuh"
#include "kernels/cuda/gates.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/scalar.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct GateBackward {
  const float* gate_up;
  std::int64_t ldg, ffn;
  const float* dy;
  std::int64_t ldy;
  float* dgate_up;  // may be gate_up
  std::int64_t lddg, row_begin;
  unsigned per_row;
};

template <class Gate>
__global__ void __launch_bounds__(kThreads) gate_backward_kernel(GateBackward g) {
  const std::int64_t row = g.row_begin + blockIdx.x / g.per_row;
  const std::int64_t i = blockIdx.x % g.per_row * kThreads + threadIdx.x;
  if (i >= g.ffn) return;
  const float gate = g.gate_up[row * g.ldg + i];
  const float up = g.gate_up[row * g.ldg + g.ffn + i];
  const float grad = g.dy[row * g.ldy + i];
  const float denominator = 1.0f + exp_f32(Gate::z(gate));
  const float sigmoid = 1.0f / denominator;
  g.dgate_up[row * g.lddg + i] = ((grad * up) * sigmoid) * Gate::slope(gate, sigmoid);
  g.dgate_up[row * g.lddg + g.ffn + i] = grad * (gate / denominator);
}

template <class Gate>
void gate_backward(const char* name, GateBackward g, std::int64_t row_end) {
  g.per_row = blocks_for(g.ffn, kThreads);
  if (g.row_begin >= row_end) return;
  launch(name, gate_backward_kernel<Gate>, blocks_for((row_end - g.row_begin) * g.per_row, 1),
         kThreads, 0, g);
}

}  // namespace

void silu_mul_backward(const float* gate_up,
                       std::int64_t ldg,
                       std::int64_t ffn,
                       const float* dy,
                       std::int64_t ldy,
                       float* dgate_up,
                       std::int64_t lddg,
                       std::int64_t row_begin,
                       std::int64_t row_end) {
  gate_backward<SiluGate>("silu_mul_backward",
                          {gate_up, ldg, ffn, dy, ldy, dgate_up, lddg, row_begin, 0}, row_end);
}

void gelu_mul_backward(const float* gate_up,
                       std::int64_t ldg,
                       std::int64_t ffn,
                       const float* dy,
                       std::int64_t ldy,
                       float* dgate_up,
                       std::int64_t lddg,
                       std::int64_t row_begin,
                       std::int64_t row_end) {
  gate_backward<GeluGate>("gelu_mul_backward",
                          {gate_up, ldg, ffn, dy, ldy, dgate_up, lddg, row_begin, 0}, row_end);
}

}  // namespace troupe::kernels::cuda
