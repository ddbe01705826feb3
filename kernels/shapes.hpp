// Operands of the kernels: plain structs of pointers and sizes, which the caller owns during the
// call. The constants below are part of the arithmetic: changing one changes bits.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/range.hpp"

#include <cstdint>

namespace troupe::kernels {

using core::Range;

inline constexpr std::int64_t kKvBlock = 16;         // token slots per KV block
inline constexpr std::int64_t kAttentionBlock = 64;  // keys between two merges of the softmax
inline constexpr std::int64_t kSplitKeys = 1024;     // keys of a split (KvDtype::kBf16)
inline constexpr std::int64_t kVocabBlock = 512;     // vocabulary columns of one partial sum
inline constexpr std::int64_t kNormChunk = 4096;     // elements of one partial sum of squares
inline constexpr std::int64_t kHeadDimMax = 256;     // largest head_dim of attention_backward

// C[m, n] (+)= A[m, k] * B[k, n]  (+ bias[n]) (+ residual[m, n])
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  Panels b;  // packed panels, or plain f32 numbers (see ldb)
  // For the backward pass, which reads plain operands and has no bias and residual:
  bool a_by_columns = false;  // element (m, k) is a[k * lda + m]: the transpose of a matrix
  std::int64_t ldb = 0;       // above 0: B is not packed, element (k, n) is b[k * ldb + n]
  float* c = nullptr;
  std::int64_t ldc = 0;
  const float* bias = nullptr;      // [n]
  const float* residual = nullptr;  // [m, n], ld `ldr`; may be the same memory as C
  std::int64_t ldr = 0;
  bool accumulate = false;  // the chain starts from C; not with bias or residual
};

// Packs a matrix into panels (kernels/panels.hpp).
struct Pack {
  const float* from = nullptr;  // [n, k] for pack_transposed, [k, n] for pack_plain
  std::int64_t ldf = 0;
  std::int64_t n = 0, k = 0;
  PanelRoom to;  // must be f32 for pack_plain
};

// How keys and values are stored, and with it how attention is computed.
enum class KvDtype : std::uint8_t {
  kF32,  // by docs/adr/0003, rule 5: the same bits on all levels
  // Rounded to bfloat16, denormals to zero. On devices only: attention in splits of kSplitKeys on
  // tensor cores (docs/adr/0019-attention-in-splits.md).
  kBf16,
};
constexpr std::int64_t bytes_of(KvDtype dtype) {
  return dtype == KvDtype::kF32 ? 4 : 2;
}

// It is a property of the class of arithmetic: of how weights are stored, and where they are.
constexpr KvDtype kv_dtype_of(PanelDtype weights, bool on_host) {
  return weights == PanelDtype::kBf16Compute && !on_host ? KvDtype::kBf16 : KvDtype::kF32;
}

// The keys or the values of one layer. A pointer to f32 converts implicitly.
struct KvNumbers {
  void* data = nullptr;
  KvDtype dtype = KvDtype::kF32;

  constexpr KvNumbers() = default;
  constexpr KvNumbers(float* numbers) : data(numbers) {}  // NOLINT: f32 is the usual case
  constexpr KvNumbers(void* numbers, KvDtype type) : data(numbers), dtype(type) {}

  // Null if they are not f32. Always inlined, because the sources of every vector level call it.
  [[gnu::always_inline]] float* f32() const {
    return dtype == KvDtype::kF32 ? static_cast<float*>(data) : nullptr;
  }
};

// KV pools of one layer. Keys are transposed within a block, so that 16 keys are adjacent:
//   k_pool [block][kv_head][head_dim][16]     v_pool [block][kv_head][16][head_dim]
struct KvWrite {
  std::int64_t kv_heads = 0, head_dim = 0;
  float* k = nullptr;  // rows [kv_heads * head_dim]; read by kv_write, written by kv_gather
  std::int64_t ldk = 0;
  float* v = nullptr;
  std::int64_t ldv = 0;
  KvNumbers k_pool, v_pool;  // f32 for kv_gather
  const std::int32_t* slot_begin =
      nullptr;                          // [rows + 1]: slots of row r are [begin[r], begin[r+1])
  const std::int32_t* slots = nullptr;  // block * 16 + place in the block
};

// Consecutive rows that hold consecutive positions of one sequence. Row i of the segment attends to
// positions 0 .. first_position + i (or the last `window` of them), found through the block table.
struct Segment {
  std::int32_t first_row = 0;
  std::int32_t rows = 0;
  std::int32_t first_position = 0;
  std::int32_t table = 0;  // index into block_table of the block that holds position 0
};

// The first key that a row sees; `keys` counts the keys up to and including its own position.
// Always inlined, because the sources of every vector level call it.
[[gnu::always_inline]] constexpr std::int64_t first_key(std::int64_t keys, std::int64_t window) {
  return window > 0 && keys > window ? keys - window : 0;
}

struct Attention {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 0;  // usually 1 / sqrt(head_dim); multiplies the finished dot product
  // Above 0: the row at position p sees only the last `window` keys, those with p - key < window.
  // Blocks of the table that lie entirely before every row's window are never read; their entries
  // may be anything. 0: every key up to p.
  std::int64_t window = 0;
  // Above 0: a scaled score s becomes softcap * tanh(s / softcap). 0: off.
  float softcap = 0;
  const float* q = nullptr;  // rows [heads * head_dim], rotated
  std::int64_t ldq = 0;
  KvNumbers k_pool, v_pool;  // of one dtype
  const Segment* segments = nullptr;
  const std::int32_t* block_table = nullptr;
  float* out = nullptr;  // rows [heads * head_dim]
  std::int64_t ldo = 0;
  float* lse = nullptr;  // [row][heads] log-sum-exp of the scaled scores; may be null
  // Whether some items have one row, and whether some have several: a device starts nothing in vain
  // for a kind that there is none of. Saying true is always right.
  bool one_row_items = true, longer_items = true;
};

// Query rows [row_begin, row_end), counted within a segment, and heads [head_begin, head_end),
// counted among the query heads that share one kv head. head_end 0 means all of them.
struct AttentionItem {
  std::int32_t segment = 0;
  std::int32_t kv_head = 0;
  std::int32_t row_begin = 0;
  std::int32_t row_end = 0;
  std::int32_t head_begin = 0;
  std::int32_t head_end = 0;
};

struct AttentionBackward {
  Attention forward;            // as in the forward pass, with `out` and `lse` filled
  const float* dout = nullptr;  // ld `lddo`
  std::int64_t lddo = 0;
  float* dq = nullptr;  // ld `lddq`, gradient of the rotated q
  std::int64_t lddq = 0;
  float* dk_pool = nullptr;  // laid out like the pools, always f32; accumulated
  float* dv_pool = nullptr;
};

// All query rows of segments [segment_begin, segment_end), in order, for one kv head. These rows
// add to the gradients of the same KV blocks, so on a CPU one thread does them all. The table of
// each segment names a block of the pool at most once.
struct AttentionUnit {
  std::int32_t segment_begin = 0;
  std::int32_t segment_end = 0;
  std::int32_t kv_head = 0;
};

// out[r] = residual[r] + (weight[r][0] * y[place[r][0]] + ... + extra_weight[r] * extra[r]): joins
// the outputs of the experts that a row chose. Each element is one chain of fused multiply-adds
// from 0 over ascending choices, then the extra row, then + residual with one rounding. All rows
// are `n` wide.
struct MixRows {
  std::int64_t n = 0;
  std::int64_t choices = 0;  // per row
  const float* y = nullptr;
  std::int64_t ldy = 0;
  const std::int32_t* place = nullptr;  // [rows][choices] rows of y
  const float* weight = nullptr;        // [rows][choices]; null: all 1
  const float* extra = nullptr;         // one more row per row; null: none
  std::int64_t ldx = 0;
  const float* extra_weight = nullptr;  // of row r at [r * ldw]; null: all 1
  std::int64_t ldw = 0;
  const float* residual = nullptr;  // may be the same memory as `out`
  std::int64_t ldr = 0;
  float* out = nullptr;
  std::int64_t ldo = 0;
};

// AdamW with decoupled weight decay (Loshchilov & Hutter 2019).
struct AdamW {
  float* param = nullptr;
  const float* grad = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  float lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  float grad_scale = 1;   // from gradient clipping
  float correction1 = 1;  // 1 - beta1^step
  float correction2 = 1;  // 1 - beta2^step
};

// Stochastic gradient descent with momentum and coupled weight decay, as torch.optim.SGD has it
// without dampening and Nesterov: g = grad * grad_scale + weight_decay * param;
// m = momentum * m + g; param -= lr * m. A m of zeros makes the first step. Without m param -= lr *
// g.
struct Sgd {
  float* param = nullptr;
  const float* grad = nullptr;
  float* m = nullptr;  // null: no momentum
  float lr = 0, momentum = 0, weight_decay = 0;
  float grad_scale = 1;  // from gradient clipping
};

// sums[c] = sum of squares of chunk c (kNormChunk numbers; the last may be shorter), in double.
// Callers add the chunks in ascending order.
struct SumSquares {
  const float* x = nullptr;
  std::int64_t count = 0;
  double* sums = nullptr;
};

}  // namespace troupe::kernels
