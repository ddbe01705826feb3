// The arithmetic of Troupe, as a table of functions. `kernels/reference/` is the plain C++ that
// defines every result; `kernels/cpu/` computes the same bits with AVX2 or AVX-512.
//
// Rules of the arithmetic (docs/adr/0003-exact-arithmetic.md):
//  - a product of matrices is, for each output, one chain of fused multiply-adds over k ascending,
//    started from zero (or from C); then + bias, then + residual, one rounding each;
//  - a sum over a row runs over 16 virtual lanes (element i goes to lane i mod 16, ascending),
//    then a fixed tree: lane l += lane l+8, then l+4, l+2, l+1;
//  - exp and log are those of kernels/scalar.hpp, denormals are flushed, nothing is contracted or
//    re-associated;
//  - no result depends on the number of rows in a call, on tiles, or on how outputs are shared.
// Functions here start no threads, allocate nothing and hold no state: callers share out ranges of
// rows, panels or items over a core::Team. All matrices are row-major f32 with a leading dimension
// in elements. Pointers may be unaligned except packed panels and KV pools (64 bytes).
#pragma once

#include "kernels/dispatch.hpp"
#include "kernels/row_shapes.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>

namespace troupe::kernels {

struct Ops {
  const char* name;  // "reference", "avx2", "avx512", "cuda"
  // How many vocabulary blocks of a head product are worth making at once: few where they should
  // still be in the cache when their sums are taken.
  std::int64_t head_blocks;

  // ---- products (kernels/shapes.hpp: Gemm) ----

  // Rows [m_begin, m_end) and panels [panel_begin, panel_end) of C.
  void (*gemm)(const Gemm& g,
               std::int64_t m_begin,
               std::int64_t m_end,
               std::int64_t panel_begin,
               std::int64_t panel_end);
  // Rows [m_begin, m_end) and columns [n_begin, n_end), n_begin a multiple of 16.
  void (*gemm_in_pieces)(const PieceGemm& g,
                         std::int64_t m_begin,
                         std::int64_t m_end,
                         std::int64_t n_begin,
                         std::int64_t n_end);
  // B[k][n] = w[n][k]: weights of y = x W^T (w is [n, k], ld `ldw`), rounded to the dtype of `to`.
  // Panels [panel_begin, panel_end); each may be packed on its own.
  void (*pack_transposed)(const float* w,
                          std::int64_t ldw,
                          std::int64_t n,
                          std::int64_t k,
                          const PanelRoom& to,
                          std::int64_t panel_begin,
                          std::int64_t panel_end);
  // B[k][n] = x[k][n] (x is [k, n], ld `ldx`): operands of the backward products.
  void (*pack_plain)(const float* x,
                     std::int64_t ldx,
                     std::int64_t n,
                     std::int64_t k,
                     float* panels,
                     std::int64_t panel_begin,
                     std::int64_t panel_end);

  // ---- rows (kernels/row_shapes.hpp) ----

  void (*copy_rows)(const CopyRows& c, std::int64_t begin, std::int64_t end);
  void (*add_rows)(const AddRows& a, std::int64_t row_begin, std::int64_t row_end);
  void (*zero)(float* x, std::int64_t begin, std::int64_t end);
  void (*embed_rows)(const EmbedRows& e, std::int64_t row_begin, std::int64_t row_end);
  // Columns [begin, end) of the table.
  void (*embed_grad)(const EmbedGrad& e, std::int64_t begin, std::int64_t end);
  // y = (x * r) * weight, r = 1 / sqrt(sum(x^2)/d + eps); r is stored in `inv_rms` when not null. y
  // may be the memory of x.
  void (*rmsnorm)(const float* x,
                  std::int64_t ldx,
                  const float* weight,
                  float eps,
                  std::int64_t d,
                  float* y,
                  std::int64_t ldy,
                  float* inv_rms,
                  std::int64_t row_begin,
                  std::int64_t row_end);
  void (*rmsnorm_heads)(const NormHeads& n, std::int64_t row_begin, std::int64_t row_end);
  // Rotates pairs (i, i + d/2) of the first d = `rotary` numbers of each head in place: x1' =
  // fma(x1, c, -(x2*s)), x2' = fma(x2, c, x1*s), with the row of `cos`/`sin` [position][d/2] at
  // positions[row].
  // `inverse` rotates by the opposite angle (the backward pass).
  void (*rope)(float* x,
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
  // y = (g / (1 + exp(-g))) * u; gate_up rows hold g in [0, ffn) and u in [ffn, 2 ffn).
  void (*silu_mul)(const float* gate_up,
                   std::int64_t ldg,
                   std::int64_t ffn,
                   float* y,
                   std::int64_t ldy,
                   std::int64_t row_begin,
                   std::int64_t row_end);
  // The same with the tanh form of GELU in place of g / (1 + exp(-g)) (Hendrycks & Gimpel 2016):
  // g (1 + tanh(t)) / 2 = g / (1 + exp(-2t)), t = sqrt(2/pi) (g + 0.044715 g^3).
  void (*gelu_mul)(const float* gate_up,
                   std::int64_t ldg,
                   std::int64_t ffn,
                   float* y,
                   std::int64_t ldy,
                   std::int64_t row_begin,
                   std::int64_t row_end);
  // Rows [row_begin, row_end) of kernels/shapes.hpp: MixRows.
  void (*mix_rows)(const MixRows& mix, std::int64_t row_begin, std::int64_t row_end);
  // y[i] = exp_f32(x[i]): 0 below -87.33, +inf above 88.72, NaN stays NaN; within 2 ulp.
  void (*exp)(const float* x, float* y, std::int64_t count);

  // ---- attention (kernels/shapes.hpp: Attention) ----

  // Copies row r's K and V (kv_heads * head_dim each) into every slot of the row.
  void (*kv_write)(const KvWrite& w, std::int64_t row_begin, std::int64_t row_end);
  // Items: some query rows of one segment for one kv head each.
  void (*attention)(const Attention& a, const AttentionItem* items, std::int64_t count);
  // Units: all query rows of some segments for one kv head each; adds to dk/dv pools, writes dq.
  void (*attention_backward)(const AttentionBackward& a,
                             const AttentionUnit* units,
                             std::int64_t count);
  // The reverse of kv_write: dk[row], dv[row] = sum over the row's slots, in slot order.
  void (*kv_gather)(const KvWrite& w, std::int64_t row_begin, std::int64_t row_end);

  // ---- vocabulary ----

  // In place over rows of `count` numbers: x[i] = cap * tanh_f32(x[i] / cap).
  void (*softcap)(float* x, std::int64_t ld, std::int64_t rows, std::int64_t count, float cap);
  // For one block of `count` columns: max of z*inv_temperature and sum of exp(z*inv_temperature -
  // max).
  void (*vocab_stats)(
      const float* logits, std::int64_t count, float inv_temperature, float* max, float* sum);
  // Entropy part of one block: sum of exp(s - lse) * s with s = z*inv_temperature.
  float (*vocab_weighted)(const float* logits,
                          std::int64_t count,
                          float inv_temperature,
                          float lse);
  // vocab_stats of blocks [block_begin, block_end) of rows [row_begin, row_end).
  void (*vocab_sums)(const VocabRows& v,
                     std::int64_t row_begin,
                     std::int64_t row_end,
                     std::int64_t block_begin,
                     std::int64_t block_end);
  void (*vocab_finish)(const VocabFinish& v, std::int64_t row_begin, std::int64_t row_end);
  void (*vocab_grad)(const VocabGrad& v,
                     std::int64_t row_begin,
                     std::int64_t row_end,
                     std::int64_t block_begin,
                     std::int64_t block_end);
  // Draws [0, count). Null where numbers lie in the host's memory: there engine::Sampler draws.
  void (*draw)(const Draws& d, std::int64_t count);

  // ---- backward of rows ----

  // dx += gradient of rmsnorm; dweight_lanes [d] accumulates over rows ascending for columns of d.
  void (*rmsnorm_backward)(const float* x,
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
  void (*rmsnorm_weight_grad)(const float* x,
                              std::int64_t ldx,
                              const float* inv_rms,
                              const float* dy,
                              std::int64_t ldy,
                              std::int64_t rows,
                              float* dweight,
                              std::int64_t d_begin,
                              std::int64_t d_end);
  // dgate_up from dy; may be called with dgate_up == gate_up.
  void (*silu_mul_backward)(const float* gate_up,
                            std::int64_t ldg,
                            std::int64_t ffn,
                            const float* dy,
                            std::int64_t ldy,
                            float* dgate_up,
                            std::int64_t lddg,
                            std::int64_t row_begin,
                            std::int64_t row_end);
  // The same for gelu_mul.
  void (*gelu_mul_backward)(const float* gate_up,
                            std::int64_t ldg,
                            std::int64_t ffn,
                            const float* dy,
                            std::int64_t ldy,
                            float* dgate_up,
                            std::int64_t lddg,
                            std::int64_t row_begin,
                            std::int64_t row_end);
  // dbias[c] += sum over rows ascending of dy[r][c], c in [begin, end).
  void (*column_sum)(const float* dy,
                     std::int64_t ldy,
                     std::int64_t rows,
                     float* dbias,
                     std::int64_t begin,
                     std::int64_t end);

  // ---- optimiser ----

  // AdamW with decoupled weight decay (Loshchilov & Hutter 2019) over [begin, end).
  void (*adamw)(const AdamW& a, std::int64_t begin, std::int64_t end);
  // sums[c] = sum of squares of chunk c (kNormChunk numbers, the last may be shorter), in double;
  // callers add the chunks ascending. Chunks [begin, end).
  void (*sum_squares)(
      const float* x, std::int64_t count, double* sums, std::int64_t begin, std::int64_t end);
  // True when every value is finite.
  bool (*all_finite)(const float* x, std::int64_t count);

  // ---- probes of the machine (kernels/calibrate.hpp) ----

  // `rounds` rounds of independent multiply-add chains held in registers, begun from `sink`, which
  // is the host's and takes their result; the floating-point operations.
  double (*fma_probe)(std::int64_t rounds, float* sink);
  // Reads `count` floats once, in several streams; their sum, so that the reads must happen.
  float (*read_probe)(const float* x, std::int64_t count);
};

}  // namespace troupe::kernels
