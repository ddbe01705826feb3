// Operands of the kernels that handle whole rows: copies between row-major matrices, the embedding,
// and the softmax over the vocabulary. Plain structs as in kernels/shapes.hpp: all pointers belong
// to the memory of the table that is called (a device's to that device), the struct itself is on
// the host. Indices are int32, in rows.
#pragma once

#include "kernels/panels.hpp"

#include <cstdint>

namespace troupe::kernels {

// to[to_row(i)] = from[from_row(i)], `columns` wide, for i of the range. A null list counts i
// itself. No row of `to` appears twice.
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

// Each of the heads that lie side by side in a row is normed on its own (Ops::rmsnorm over
// head_dim), all with one weight [head_dim]. 1 / rms of row r and head h goes to inv_rms[h * ldi +
// r].
struct NormHeads {
  std::int64_t heads = 0, head_dim = 0;
  const float* x = nullptr;
  std::int64_t ldx = 0;
  const float* weight = nullptr;
  float eps = 0;
  float* y = nullptr;  // may be the memory of x
  std::int64_t ldy = 0;
  float* inv_rms = nullptr;  // null: not wanted
  std::int64_t ldi = 0;
};

// x[r] = scale * row `tokens[r]` of the embedding: of `table` [vocab, hidden], or where that is
// null, column `tokens[r]` of the packed `panels` (panels over the vocabulary, k = hidden). Not
// multiplied at all when scale is 1 and the panels are read.
struct EmbedRows {
  std::int64_t hidden = 0;
  Panels panels;
  const float* table = nullptr;
  float scale = 1;
  const std::int32_t* tokens = nullptr;
  float* x = nullptr;  // [rows, hidden]
};

// table[tokens[r]][c] += dx[r][c] * scale for r ascending, each c a chain of its own: the product
// is rounded, then the sum.
struct EmbedGrad {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;
  const std::int32_t* tokens = nullptr;
  const float* dx = nullptr;  // [rows, hidden]
  float scale = 1;
  float* table = nullptr;  // [vocab, hidden]
};

// C = A B where B lies as it is (ldb) and k is cut into pieces of `piece`: each piece is a chain of
// fused multiply-adds of its own from zero; the pieces are then added, ascending, one rounding
// each. Over a vocabulary one long chain would lose digits.
struct PieceGemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t piece = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;  // [k, n]
  std::int64_t ldb = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  float* sums = nullptr;  // scratch of the processor's levels: [min(m, kPieceRows), n]
};
inline constexpr std::int64_t kPieceRows = 672;  // whole tiles of the processor's levels

// The logits of some rows and the partial sums of their softmax, s = z * inv_temperature.
struct VocabRows {
  const float* logits = nullptr;  // rows [vocab], ld `ld`
  std::int64_t ld = 0;
  std::int64_t vocab = 0;
  const float* inv_temperature = nullptr;  // [rows]
  float* block_max = nullptr;              // [rows][blocks of kVocabBlock columns]
  float* block_sum = nullptr;              // of exp(s - block_max)
};

// One token for each draw, from the softmax at its row's temperature: the draw of
// engine/sampler.cpp for samples that truncate and penalise nothing, with the same bits.
struct Draws {
  VocabRows rows;                     // with the sums of all blocks
  const double* uniform = nullptr;    // [draws] in [0, 1); below 0: the most likely token
  const std::int32_t* row = nullptr;  // [draws] the row of each draw; null: draw i is of row i
  std::int32_t* token = nullptr;      // [draws]
  float* logprob = nullptr;           // [draws]; not finite when the row's logits are not
};

// Which tokens' log-probs are wanted: those of row r are targets target[begin[r]] ..
// target[begin[r + 1] - 1], and target i is the token `token[i]`.
struct VocabTargets {
  const std::int32_t* begin = nullptr;  // [rows + 1]
  const std::int32_t* target = nullptr;
  const std::int32_t* token = nullptr;
};

// From the partial sums: M = max over blocks; S = chain of fused multiply-adds over blocks
// ascending of sum_b * exp(max_b - M); lse = M + log(S); entropy = lse - (sum of the blocks' sums
// of p s, ascending); logprobs[i] = (z * inv_temperature) - lse, one rounding each.
struct VocabFinish {
  VocabRows rows;
  float* lse = nullptr;      // [rows]
  float* entropy = nullptr;  // [rows]; null: not wanted
  VocabTargets targets;      // `begin` null: none
  float* logprobs = nullptr;
};

// In place: logits become their gradients. With g and h the sums of dlogprobs and dentropies over a
// row's targets in their order: dz_v = (g * (0 - p_v) - h * p_v * (s_v - lse + entropy)) *
// inv_temperature, then for each target in order dz_token += dlogprobs[i] * inv_temperature, then
// the gradient of the soft cap where `softcap` is above 0 (dz *= 1 - (z / cap)^2).
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
