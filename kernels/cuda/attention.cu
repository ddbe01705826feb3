// Attention of one row to its keys in f32 (decoding). Bound by reading keys and values, each once
// for all heads that share them. A thread block does one item and loads 64 keys at a time into
// shared memory. A thread computes the scores of one key, then a warp the weights of one head, then
// a thread the chains of one dimension over the keys. Meanwhile later keys and values are copied:
// one step ahead if several blocks share a multiprocessor, two if each has its own.
#include "kernels/cuda/attention_dots.cuh"
#include "kernels/cuda/attention_spread.cuh"
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kHeadsOfWarp = kOneRowHeads / kWarps;

std::size_t shared_bytes(const Attention& a, int stages) {
  return static_cast<std::size_t>(kOneRowHeads * (query_floats(a.head_dim) + kKeys)) *
             sizeof(float) +
         key_value_bytes(a.head_dim) * static_cast<std::size_t>(stages);
}

// Two chains over keys [begin, end): the values of one dimension for two heads.
__device__ void values(const float* p0,
                       const float* p1,
                       const float* v,
                       int head_dim,
                       int begin,
                       int end,
                       float& out0,
                       float& out1) {
  int key = begin;
  for (; key < end && key % 4 != 0; ++key) {
    out0 = __fmaf_rn(p0[key], v[key * head_dim], out0);
    out1 = __fmaf_rn(p1[key], v[key * head_dim], out1);
  }
#pragma unroll 4
  for (; key + 4 <= end; key += 4) {
    const float4 x = *reinterpret_cast<const float4*>(p0 + key);
    const float4 y = *reinterpret_cast<const float4*>(p1 + key);
    const float value[4] = {v[key * head_dim], v[(key + 1) * head_dim], v[(key + 2) * head_dim],
                            v[(key + 3) * head_dim]};
    out0 = __fmaf_rn(x.x, value[0], out0);
    out1 = __fmaf_rn(y.x, value[0], out1);
    out0 = __fmaf_rn(x.y, value[1], out0);
    out1 = __fmaf_rn(y.y, value[1], out1);
    out0 = __fmaf_rn(x.z, value[2], out0);
    out1 = __fmaf_rn(y.z, value[2], out1);
    out0 = __fmaf_rn(x.w, value[3], out0);
    out1 = __fmaf_rn(y.w, value[3], out1);
  }
  for (; key < end; ++key) {
    out0 = __fmaf_rn(p0[key], v[key * head_dim], out0);
    out1 = __fmaf_rn(p1[key], v[key * head_dim], out1);
  }
}

template <int kStages>
__global__ void __launch_bounds__(kThreads)
    one_row_kernel(Attention a, const AttentionItem* items, Spread spread) {
  __shared__ float alphas[kOneRowHeads];  // at the end: 1 / sum
  const ItemView item(a, items[blockIdx.x]);
  if (!item.one_row()) return;
  const KeyTiles tiles(a, item);
  if (spread.holds(tiles)) return;
  const int me = static_cast<int>(threadIdx.x), warp = me / 32, lane = me % 32;
  const int head_dim = static_cast<int>(a.head_dim), heads = item.heads;
  const RowQueries queries(reinterpret_cast<float*>(dynamic_shared()), head_dim);
  float* const p = queries.q + kOneRowHeads * queries.row_floats;  // [heads][64]: products, then weights
  float* const k = p + kOneRowHeads * kKeys;
  const int key_floats = kBlocksOfKeys * key_stride(head_dim);
  float* const v = k + kStages * key_floats;
  const int value_floats = kBlocksOfKeys * value_stride(head_dim);
  const auto fetch_keys = [&](std::int64_t block, int slot) {
    fetch_blocks(a, item, static_cast<const float*>(a.k_pool.data), block, tiles.first, tiles.end,
                 k + slot * key_floats, key_stride(head_dim));
  };
  const auto fetch_values = [&](std::int64_t block, int slot) {
    fetch_blocks(a, item, static_cast<const float*>(a.v_pool.data), block, tiles.first, tiles.end,
                 v + slot * value_floats, value_stride(head_dim));
  };
#pragma unroll
  for (int i = 0; i < kStages; ++i) {
    fetch_keys(tiles.begin_of(i), i);
    fetch_values(tiles.begin_of(i), i);
  }
  queries.load(a, item);

  // The thread does one dimension of every `together`-th head from `own` on, in pairs.
  const int padded = (head_dim + 31) / 32 * 32, together = kThreads / padded;
  const int d = me % padded, own = me / padded;
  const bool idle = d >= head_dim || own >= together;
  float out[kOneRowHeads];
  Scores softmax[kHeadsOfWarp];  // for the warp's heads
#pragma unroll
  for (int i = 0; i < kOneRowHeads; ++i)
    out[i] = 0.0f;
#pragma unroll
  for (int i = 0; i < kHeadsOfWarp; ++i)
    softmax[i].max = -infinity();
  int slot = 0;
  const int count = tiles.count();
  for (int tile = 0; tile < count; ++tile) {
    const int from = tiles.from(tile), to = tiles.to(tile);
    copy_async_wait<2 * kStages - 1>();
    __syncthreads();
    products_of_tile(queries, k + slot * key_floats, head_dim, heads, from, to,
                     [&](int head, int key, float dot) { p[head * kKeys + key] = dot; });
    __syncthreads();
    fetch_keys(tiles.begin_of(tile + kStages), slot);
    if (warp < heads) {
#pragma unroll
      for (int i = 0; i < kHeadsOfWarp; ++i) {
        const float* const scores = p + (warp + i * kWarps) * kKeys;
        softmax[i].any = warp + i * kWarps < heads;
        softmax[i].seen0 = softmax[i].any && from <= lane && lane < to;
        softmax[i].seen1 = softmax[i].any && from <= lane + 32 && lane + 32 < to;
        softmax[i].score0 = scored(a, scores[lane]);
        softmax[i].score1 = scored(a, scores[lane + 32]);
      }
      merge_scores(softmax);
#pragma unroll
      for (int i = 0; i < kHeadsOfWarp; ++i) {
        if (!softmax[i].any) continue;
        float* const weights = p + (warp + i * kWarps) * kKeys;
        weights[lane] = softmax[i].score0;
        weights[lane + 32] = softmax[i].score1;
        if (lane == 0) alphas[warp + i * kWarps] = softmax[i].alpha;
      }
    }
    copy_async_wait<2 * kStages - 1>();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kOneRowHeads; i += 2) {
      const int head = own + i * together;
      if (idle || head >= heads) continue;
      const int next = head + together < heads ? head + together : head;
      out[i] = out[i] * alphas[head];
      out[i + 1] = out[i + 1] * alphas[next];
      values(p + head * kKeys, p + next * kKeys, v + slot * value_floats + d, head_dim, from, to,
             out[i], out[i + 1]);
    }
    __syncthreads();
    fetch_values(tiles.begin_of(tile + kStages), slot);
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
#pragma unroll
  for (int i = 0; i < kHeadsOfWarp; ++i) {
    const int head = warp + i * kWarps;
    if (head >= heads || lane != 0) continue;
    alphas[head] = 1.0f / softmax[i].sum;
    if (a.lse != nullptr)
      a.lse[item.first_row * a.heads + item.first_head + head] =
          softmax[i].max + log_f32(softmax[i].sum);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kOneRowHeads; ++i) {
    const int head = own + i * together;
    if (!idle && head < heads)
      a.out[item.first_row * a.ldo + (item.first_head + head) * head_dim + d] =
          out[i] * alphas[head];
  }
}

}  // namespace

void attention_of_one_row(const Attention& a, const AttentionItem* items, std::int64_t count) {
  const auto grid = static_cast<unsigned>(count);
  const std::size_t room = current_device().shared_bytes;
  if (shared_bytes(a, 1) > room)
    check(cudaErrorInvalidValue, "attention: too little shared memory for heads of this size");
  const Spread spread = spread_of(a, count);
  attention_spread(a, items, count, spread);
  if (count <= kMultiprocessors && shared_bytes(a, 2) + 1024 <= room)
    launch("attention", one_row_kernel<2>, grid, kThreads, shared_bytes(a, 2), a, items, spread);
  else
    launch("attention", one_row_kernel<1>, grid, kThreads, shared_bytes(a, 1), a, items, spread);
}

void attention(const Attention& a, const AttentionItem* items, std::int64_t count) {
  if (count <= 0) return;
  if (a.head_dim > kHeadDimLargest)
    check(cudaErrorInvalidValue, "attention of more than 256 dimensions a head");
  if (a.k_pool.dtype == KvDtype::kBf16) return attention_in_splits(a, items, count);
  const bool wide = a.heads / a.kv_heads > kOneRowHeads;  // one row of all its heads is too wide
  if (a.one_row_items) attention_of_one_row(a, items, count);
  if (a.longer_items || wide) attention_of_rows(a, items, count);
}

}  // namespace troupe::kernels::cuda
