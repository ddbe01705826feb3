// The backward pass row by row, and what goes with it (kernels/ops.hpp); on the entered device's
// stream. Sources: rows_backward.cu, activations_backward.cu, embed_grad.cu.
#pragma once

#include "kernels/ops.hpp"

namespace troupe::kernels::cuda {

void mix_rows(const MixRows& mix, std::int64_t row_begin, std::int64_t row_end);
void kv_gather(const KvWrite& w, std::int64_t row_begin, std::int64_t row_end);
void embed_grad(const EmbedGrad& e, std::int64_t begin, std::int64_t end);
void rmsnorm_backward(const float* x,
                      std::int64_t ldx,
                      const float* weight,
                      const float* inv_rms,
                      const float* dy,
                      std::int64_t ldy,
                      std::int64_t d,
                      float* dx,
                      std::int64_t lddx,
                      std::int64_t row_begin,
                      std::int64_t row_end);
void rmsnorm_weight_grad(const float* x,
                         std::int64_t ldx,
                         const float* inv_rms,
                         const float* dy,
                         std::int64_t ldy,
                         std::int64_t rows,
                         float* dweight,
                         std::int64_t d_begin,
                         std::int64_t d_end);
void column_sum(const float* dy,
                std::int64_t ldy,
                std::int64_t rows,
                float* dbias,
                std::int64_t begin,
                std::int64_t end);
void silu_mul_backward(const float* gate_up,
                       std::int64_t ldg,
                       std::int64_t ffn,
                       const float* dy,
                       std::int64_t ldy,
                       float* dgate_up,
                       std::int64_t lddg,
                       std::int64_t row_begin,
                       std::int64_t row_end);
void gelu_mul_backward(const float* gate_up,
                       std::int64_t ldg,
                       std::int64_t ffn,
                       const float* dy,
                       std::int64_t ldy,
                       float* dgate_up,
                       std::int64_t lddg,
                       std::int64_t row_begin,
                       std::int64_t row_end);

}  // namespace troupe::kernels::cuda
