// The functions of the reference level, gathered into a table by table.cpp (kernels/batches.hpp has
// the loops around those of one row or item). Together they define what kernels/ops.hpp promises:
// plain loops over single numbers. Any thread.
#pragma once

#include "kernels/ops.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>

namespace troupe::kernels::reference {

void gemm(const Gemm& g,
          std::int64_t m_begin,
          std::int64_t m_end,
          std::int64_t panel_begin,
          std::int64_t panel_end);
void pack_transposed(const float* w,
                     std::int64_t ldw,
                     std::int64_t n,
                     std::int64_t k,
                     const PanelRoom& to,
                     std::int64_t panel_begin,
                     std::int64_t panel_end);
void pack_plain(const float* x,
                std::int64_t ldx,
                std::int64_t n,
                std::int64_t k,
                float* panels,
                std::int64_t panel_begin,
                std::int64_t panel_end);

void rmsnorm(const float* x,
             std::int64_t ldx,
             const float* weight,
             float eps,
             std::int64_t d,
             float* y,
             std::int64_t ldy,
             float* inv_rms,
             std::int64_t row_begin,
             std::int64_t row_end);
void rope(float* x,
          std::int64_t ldx,
          std::int64_t heads,
          std::int64_t head_dim,
          std::int64_t rotary,
          const std::int32_t* positions,
          const float* cos,
          const float* sin,
          bool inverse,
          std::int64_t row_begin,
          std::int64_t row_end);
void mix_rows(const MixRows& mix, std::int64_t row_begin, std::int64_t row_end);
void exp_row(const float* x, float* y, std::int64_t count);

void kv_write(const KvWrite& w, std::int64_t row_begin, std::int64_t row_end);
void kv_gather(const KvWrite& w, std::int64_t row_begin, std::int64_t row_end);
void attention_item(const Attention& a, const AttentionItem& item, const AttentionItem* next);
void attention_gradient(const AttentionBackward& a, std::int64_t segment, std::int64_t kv_head);

void vocab_stats(
    const float* logits, std::int64_t count, float inv_temperature, float* max, float* sum);
float vocab_weighted(const float* logits, std::int64_t count, float inv_temperature, float lse);
// z <- (grad_logprob * (0 - p) - grad_entropy * p * (s - lse + entropy)) * inv_temperature.
void vocab_grad_row(float* logits,
                    std::int64_t count,
                    float inv_temperature,
                    float lse,
                    float grad_logprob,
                    float grad_entropy,
                    float entropy);

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
// A gate makes g / (1 + exp(z)) of g. With s = 1 / (1 + exp(z)) its gradient is s * slope, so that
// du = dy (g / (1 + exp(z))) and dg = dy u s * slope.
struct Silu {
  static float z(float gate);
  static float slope(float gate, float sigmoid);
};
struct GeluTanh {
  static float z(float gate);
  static float slope(float gate, float sigmoid);
};
template <class Gate>
void gate_mul(const float* gate_up,
              std::int64_t ldg,
              std::int64_t ffn,
              float* y,
              std::int64_t ldy,
              std::int64_t row_begin,
              std::int64_t row_end);
template <class Gate>
void gate_mul_backward(const float* gate_up,
                       std::int64_t ldg,
                       std::int64_t ffn,
                       const float* dy,
                       std::int64_t ldy,
                       float* dgate_up,
                       std::int64_t lddg,
                       std::int64_t row_begin,
                       std::int64_t row_end);
void softcap_row(float* x, std::int64_t count, float cap);
void softcap_gradient_row(const float* y, float* grad, std::int64_t count, float cap);

void column_sum(const float* dy,
                std::int64_t ldy,
                std::int64_t rows,
                float* dbias,
                std::int64_t begin,
                std::int64_t end);

void adamw(const AdamW& a, std::int64_t begin, std::int64_t end);
double sum_squares_of(const float* x, std::int64_t count);
bool all_finite(const float* x, std::int64_t count);

double fma_probe(std::int64_t rounds, float* sink);
float read_probe(const float* x, std::int64_t count);

extern const Ops kOps;

}  // namespace troupe::kernels::reference
