// The gated activations of a feed-forward block and exp, element by element: bound by the memory.
#include "kernels/cuda/activations.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/gates.cuh"
#include "kernels/cuda/scalar.cuh"

namespace troupe::kernels::cuda {
namespace {

struct GateMul {
  const float* gate_up;
  std::int64_t ldg, ffn;
  float* y;
  std::int64_t ldy;
};

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

void silu_mul(const float* gate_up,
              std::int64_t ldg,
              std::int64_t ffn,
              float* y,
              std::int64_t ldy,
              std::int64_t row_begin,
              std::int64_t row_end) {
  launch_elements("silu_mul", gate_mul_kernel<SiluGate>, ffn, row_begin, row_end,
                  GateMul{gate_up, ldg, ffn, y, ldy});
}

void gelu_mul(const float* gate_up,
              std::int64_t ldg,
              std::int64_t ffn,
              float* y,
              std::int64_t ldy,
              std::int64_t row_begin,
              std::int64_t row_end) {
  launch_elements("gelu_mul", gate_mul_kernel<GeluGate>, ffn, row_begin, row_end,
                  GateMul{gate_up, ldg, ffn, y, ldy});
}

void exp(const float* x, float* y, std::int64_t count) {
  launch("exp", exp_kernel, blocks_for(count, kElementThreads * kPerThread), kElementThreads, 0, x,
         y, count);
}

}  // namespace troupe::kernels::cuda
