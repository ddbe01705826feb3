// Operands of the kernels that work on whole rows: copies between row-major matrices, the
// embedding, norms, rotary positions, activations, and the softmax over the vocabulary. Plain
// structs as in kernels/shapes.hpp. For a device's table all pointers point into device memory,
// while the struct itself is on the host. Indices are int32 and count rows.
#pragma once

#include "kernels/shapes.hpp"

#include <cstdint>

namespace troupe::kernels {

// to[to_row[i]] = from[from_row[i]], `columns` wide, for each i of the range. A null list stands
// for i itself. No row of `to` may appear twice.
struct CopyRows {
  std::int64_t columns = 0;
  const float* from = nullptr;
  std::int64_t ldf = 0;
  const std::int32_t* from_row = nullptr;
  float* to = nullptr;
  std::int64_t ldt = 0;
  const std::int32_t* to_row = nullptr;
};

// out[r] = a[r] + b[r], one rounding; out may be the memory of a or b.
struct AddRows {
  std::int64_t columns = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  float* out = nullptr;
  std::int64_t ldo = 0;
};

// y = (x * r) * weight, r = 1 / sqrt(sum(x^2) / d + eps), for each of the `heads` adjacent pieces
// of d numbers in a row; all pieces share one weight [d]. r of row i and head h goes to inv_rms[h *
// ldi + i].
struct RmsNorm {
  std::int64_t heads = 1, d = 0;
  const float* x = nullptr;
  std::int64_t ldx = 0;
  const float* weight = nullptr;
  float eps = 0;
  float* y = nullptr;  // may be the memory of x
  std::int64_t ldy = 0;
  float* inv_rms = nullptr;  // null: not wanted
  std::int64_t ldi = 0;
};

// Adds the gradient of RmsNorm with one head to dx.
struct RmsNormBackward {
  std::int64_t d = 0;
  const float* x = nullptr;
  std::int64_t ldx = 0;
  const float* weight = nullptr;
  const float* inv_rms = nullptr;
  const float* dy = nullptr;
  std::int64_t ldy = 0;
  float* dx = nullptr;
  std::int64_t lddx = 0;
};

// dweight[c] += dy[r][c] * (x[r][c] * inv_rms[r]), one chain over all rows ascending for each c.
struct RmsNormWeightGrad {
  std::int64_t rows = 0;
  const float* x = nullptr;
  std::int64_t ldx = 0;
  const float* inv_rms = nullptr;
  const float* dy = nullptr;
  std::int64_t ldy = 0;
  float* dweight = nullptr;
};

// sums[c] += dy[r][c] over all rows ascending: the gradient of a bias.
struct ColumnSum {
  std::int64_t rows = 0;
  const float* dy = nullptr;
  std::int64_t ldy = 0;
  float* sums = nullptr;
};

// Rotates pairs (i, i + d/2) of the first d = `rotary` numbers of each head in place: x1' =
// fma(x1, c, -(x2*s)), x2' = fma(x2, c, x1*s), with the row of `cos`/`sin` [position][d/2] at
// positions[row].
struct Rope {
  std::int64_t heads = 0, head_dim = 0, rotary = 0;
  float* x = nullptr;
  std::int64_t ldx = 0;
  const std::int32_t* positions = nullptr;
  const float* cos = nullptr;
  const float* sin = nullptr;
  bool inverse = false;  // rotates by the opposite angle, for the backward pass
};

// The activation of a feed-forward block, applied to its gate g. Silu: g / (1 + exp(-g)). The tanh
// form of GELU (Hendrycks & Gimpel 2016): g (1 + tanh(t)) / 2 = g / (1 + exp(-2t)), t = sqrt(2/pi)
// (g + 0.044715 g^3).
enum class Activation { kSilu, kGeluTanh };

// y = activation(g) * u; gate_up rows hold g in [0, ffn) and u in [ffn, 2 ffn).
struct GateMul {
  Activation activation = Activation::kSilu;
  std::int64_t ffn = 0;
  const float* gate_up = nullptr;
  std::int64_t ldg = 0;
  float* y = nullptr;
  std::int64_t ldy = 0;
};

// The gradient of GateMul: computes dgate_up from dy.
struct GateMulBackward {
  Activation activation = Activation::kSilu;
  std::int64_t ffn = 0;
  const float* gate_up = nullptr;
  std::int64_t ldg = 0;
  const float* dy = nullptr;
  std::int64_t ldy = 0;
  float* dgate_up = nullptr;  // may be the memory of gate_up
  std::int64_t lddg = 0;
};

// x[r] = scale * row `tokens[r]` of the embedding: of `table` [vocab, hidden], or, if that is null,
// column `tokens[r]` of the packed `panels` (panels over the vocabulary, k = hidden). With scale 1
// and panels, nothing is multiplied.
struct EmbedRows {
  std::int64_t hidden = 0;
  Panels panels;
  const float* table = nullptr;
  float scale = 1;
  const std::int32_t* tokens = nullptr;
  float* x = nullptr;  // [rows, hidden]
};

// table[tokens[r]][c] += dx[r][c] * scale for ascending r, with one chain for each c. Rounds the
// product, then the sum.
struct EmbedGrad {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  const std::int32_t* tokens = nullptr;
  const float* dx = nullptr;  // [rows, hidden]
  float scale = 1;
  float* table = nullptr;     // [vocab, hidden]
  std::int32_t skipped = -1;  // a token whose rows are left out
};

// C = A B with plain, unpacked B (ldb) and k cut into pieces of `piece`. Each piece is its own
// chain of fused multiply-adds from zero. The pieces are then added in ascending order, one
// rounding each. Over a vocabulary, one long chain would lose digits.
struct PieceGemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t piece = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;  // [k, n]
  std::int64_t ldb = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  // Scratch of the CPU levels: [min(m, kPieceRows), n]. Calls that run at once need one each.
  float* sums = nullptr;
};
inline constexpr std::int64_t kPieceRows = 672;  // rows at a time; whole tiles of every CPU level

// In place over `columns` numbers of each row: x = cap * tanh_f32(x / cap).
struct SoftCap {
  std::int64_t columns = 0;
  float* x = nullptr;
  std::int64_t ldx = 0;
  float cap = 0;
};

// The logits z of some rows, and the partial sums of the softmax over s = z * inv_temperature.
struct VocabRows {
  const float* logits = nullptr;  // rows [vocab], ld `ld`
  std::int64_t ld = 0;
  std::int64_t vocab = 0;
  const float* inv_temperature = nullptr;  // [rows]
  float* block_max = nullptr;              // [rows][blocks of kVocabBlock columns]
  float* block_sum = nullptr;              // of exp(s - block_max)
};

// The tokens whose log-probs are wanted. Row r has the targets target[begin[r]] .. target[begin[r +
// 1] - 1], and target i is the token `token[i]`.
struct VocabTargets {
  const std::int32_t* begin = nullptr;  // [rows + 1]
  const std::int32_t* target = nullptr;
  const std::int32_t* token = nullptr;
};

// Results from the partial sums: M = max over blocks; S = chain of fused multiply-adds over blocks
// ascending of sum_b * exp(max_b - M); lse = M + log(S); entropy = lse - (sum of the blocks' sums
// of p s, ascending); logprobs[i] = (z * inv_temperature) - lse, one rounding each.
struct VocabFinish {
  VocabRows rows;
  float* lse = nullptr;      // [rows]
  float* entropy = nullptr;  // [rows]; null: not wanted
  VocabTargets targets;      // `begin` null: none
  float* logprobs = nullptr;
};

// Overwrites logits with their gradients. With g and h the sums of dlogprobs and dentropies over a
// row's targets in order: dz_v = (g * (0 - p_v) - h * p_v * (s_v - lse + entropy)) *
// inv_temperature, then for each target in order dz_token += dlogprobs[i] * inv_temperature, then
// the gradient of the soft cap if `softcap` is above 0 (dz *= 1 - (z / cap)^2).
struct VocabGrad {
  float* logits = nullptr;
  std::int64_t ld = 0;
  std::int64_t vocab = 0;
  float inv_temperature = 1;
  float softcap = 0;
  const float* lse = nullptr;      // [rows]
  const float* entropy = nullptr;  // [rows]; null: 0
  VocabTargets targets;
  const float* dlogprobs = nullptr;   // by target; null: none
  const float* dentropies = nullptr;  // by target; null: none
};

}  // namespace troupe::kernels
