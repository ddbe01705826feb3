// The gated activations and exp.
#pragma once

#include <cstdint>

namespace troupe::kernels::cuda {

void silu_mul(const float* gate_up,
              std::int64_t ldg,
              std::int64_t ffn,
              float* y,
              std::int64_t ldy,
              std::int64_t row_begin,
              std::int64_t row_end);
void gelu_mul(const float* gate_up,
              std::int64_t ldg,
              std::int64_t ffn,
              float* y,
              std::int64_t ldy,
              std::int64_t row_begin,
              std::int64_t row_end);
void exp(const float* x, float* y, std::int64_t count);

}  // namespace troupe::kernels::cuda
