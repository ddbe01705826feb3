// The embedding, rotary positions, and keys and values written into their slots: bound by the
// memory. A column of packed panels is read one number out of each line; keys go to lines of 16
// positions, which the second-level cache puts together.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/panels.cuh"
#include "kernels/cuda/positions.cuh"

namespace troupe::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kElementThreads) embed_kernel(EmbedRows e, std::int64_t begin) {
  const std::int64_t row = begin + blockIdx.y;
  const std::int64_t token = e.tokens[row];
  float* const out = e.x + row * e.hidden;
  if (e.table != nullptr) {
    const float* const in = e.table + token * e.hidden;
    for_columns(e.hidden, [&](std::int64_t i) { out[i] = in[i] * e.scale; });
    return;
  }
  for_columns(e.hidden, [&](std::int64_t i) {
    float x = stored(e.panels, e.hidden, token, i);
    if (e.panels.scale != nullptr) x = x * e.panels.scale[token];
    if (e.scale != 1.0f) x = x * e.scale;
    out[i] = x;
  });
}

struct Rope {
  float* x;
  std::int64_t ldx, head_dim, half, pairs;  // pairs: of all heads
  const std::int32_t* positions;
  const float* cos;
  const float* sin;
  bool inverse;
};

__global__ void __launch_bounds__(kElementThreads) rope_kernel(Rope r, std::int64_t begin) {
  const std::int64_t row = begin + blockIdx.y;
  const std::int64_t at = std::int64_t{r.positions[row]} * r.half;
  const auto half = static_cast<unsigned>(r.half);
  for_columns(r.pairs, [&](std::int64_t pair) {
    const unsigned head = static_cast<unsigned>(pair) / half;
    const unsigned i = static_cast<unsigned>(pair) % half;
    float* const first = r.x + row * r.ldx + head * r.head_dim + i;
    float* const second = first + r.half;
    const float c = r.cos[at + i];
    const float s = r.inverse ? -r.sin[at + i] : r.sin[at + i];
    const float x1 = *first;
    const float x2 = *second;
    *first = __fmaf_rn(x1, c, -(x2 * s));
    *second = __fmaf_rn(x2, c, x1 * s);
  });
}

__global__ void __launch_bounds__(kElementThreads) kv_write_kernel(KvWrite w, std::int64_t begin) {
  const std::int64_t row = begin + blockIdx.y;
  const auto head_dim = static_cast<unsigned>(w.head_dim);
  const std::int32_t first = w.slot_begin[row], last = w.slot_begin[row + 1];
  for_columns(w.kv_heads * w.head_dim, [&](std::int64_t column) {
    const unsigned head = static_cast<unsigned>(column) / head_dim;
    const unsigned d = static_cast<unsigned>(column) % head_dim;
    const float k = w.k[row * w.ldk + column];
    const float v = w.v[row * w.ldv + column];
    for (std::int32_t s = first; s < last; ++s) {
      const std::int64_t slot = w.slots[s], place = slot % kKvBlock;
      const std::int64_t block = (slot / kKvBlock * w.kv_heads + head) * w.head_dim * kKvBlock;
      w.k_pool[block + d * kKvBlock + place] = k;
      w.v_pool[block + place * w.head_dim + d] = v;
    }
  });
}

}  // namespace

void embed_rows(const EmbedRows& e, std::int64_t row_begin, std::int64_t row_end) {
  launch_elements("embed_rows", embed_kernel, e.hidden, row_begin, row_end, e);
}

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
          std::int64_t row_end) {
  const std::int64_t half = rotary / 2, pairs = heads * half;
  launch_elements("rope", rope_kernel, pairs, row_begin, row_end,
                  Rope{x, ldx, head_dim, half, pairs, positions, cos, sin, inverse});
}

void kv_write(const KvWrite& w, std::int64_t row_begin, std::int64_t row_end) {
  launch_elements("kv_write", kv_write_kernel, w.kv_heads * w.head_dim, row_begin, row_end, w);
}

}  // namespace troupe::kernels::cuda
