// The embedding, rotary positions, and writing keys and values into their slots. Bound by memory.
// Reading a token's column of packed panels takes one number from each line. Keys of adjacent
// positions share lines of 16 numbers, whose writes the L2 cache combines.
#include "kernels/cuda/bf16.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/panels.cuh"

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

__global__ void __launch_bounds__(kElementThreads) rope_kernel(Rope r, std::int64_t begin) {
  const std::int64_t row = begin + blockIdx.y;
  const auto half = static_cast<unsigned>(r.rotary / 2);
  const std::int64_t at = std::int64_t{r.positions[row]} * half;
  for_columns(r.heads * half, [&](std::int64_t pair) {
    const unsigned head = static_cast<unsigned>(pair) / half;
    const unsigned i = static_cast<unsigned>(pair) % half;
    float* const first = r.x + row * r.ldx + head * r.head_dim + i;
    float* const second = first + half;
    const float c = r.cos[at + i];
    const float s = r.inverse ? -r.sin[at + i] : r.sin[at + i];
    const float x1 = *first;
    const float x2 = *second;
    *first = __fmaf_rn(x1, c, -(x2 * s));
    *second = __fmaf_rn(x2, c, x1 * s);
  });
}

__device__ void store(const KvNumbers& pool, std::int64_t at, float x) {
  if (pool.dtype == KvDtype::kF32)
    static_cast<float*>(pool.data)[at] = x;
  else
    static_cast<std::uint16_t*>(pool.data)[at] = static_cast<std::uint16_t>(rounded_pair(x, 0.0f));
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
      store(w.k_pool, block + d * kKvBlock + place, k);
      store(w.v_pool, block + place * w.head_dim + d, v);
    }
  });
}

}  // namespace

void embed_rows(const EmbedRows& e, Range rows) {
  launch_elements("embed_rows", embed_kernel, e.hidden, rows, e);
}

void rope(const Rope& r, Range rows) {
  launch_elements("rope", rope_kernel, r.heads * (r.rotary / 2), rows, r);
}

void kv_write(const KvWrite& w, Range rows) {
  launch_elements("kv_write", kv_write_kernel, w.kv_heads * w.head_dim, rows, w);
}

}  // namespace troupe::kernels::cuda
