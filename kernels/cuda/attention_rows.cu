// Attention of many rows (prompts, scoring). Bound by multiply-adds. A thread block takes the rows
// and heads ("queries") of an item, QW per warp for eight warps. 64 keys and values at a time are
// in shared memory for all. Within a warp, each lane first computes the scores of two keys for
// every query. Then each lane computes J dimensions of every query's output, kept in registers. The
// next keys are copied while values are summed, and the next values while scores are computed.
#include "kernels/cuda/attention_keys.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
constexpr int kItemRows = 32;  // per item, as plans cut them; more rows only take longer

template <int QW>
std::size_t shared_bytes(const Attention& a) {
  return static_cast<std::size_t>(kWarps * QW * ((a.head_dim + 3) / 4 * 4 + kKeys)) *
             sizeof(float) +
         key_value_bytes(a.head_dim);
}

// State of query i of a warp, kept by lane i.
struct QueryState {
  std::int64_t first = 0, end = 0;  // the keys that it sees; none if there is no query
  float max = -infinity(), sum = 0.0f;
  float alpha = 1.0f;  // factor from the last block of keys
  __device__ QueryState() {}
};

// Computes the products of the warp's queries with keys `lane` and `lane + 32`, as chains over the
// dimensions, into p [QW][64].
template <int QW>
__device__ void dots(const float* q, int row_floats, const float* k, int head_dim, float* p) {
  float dot[QW][2];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* const k0 = k + lane / static_cast<int>(kKvBlock) * key_stride(head_dim) +
                          lane % static_cast<int>(kKvBlock);
  const float* const k1 = k0 + 2 * key_stride(head_dim);
#pragma unroll
  for (int i = 0; i < QW; ++i)
    dot[i][0] = dot[i][1] = 0.0f;
  int d = 0;
#pragma unroll 2
  for (; d + 4 <= head_dim; d += 4) {
    float x[4], y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      x[j] = k0[(d + j) * kKvBlock];
      y[j] = k1[(d + j) * kKvBlock];
    }
#pragma unroll
    for (int i = 0; i < QW; ++i) {
      const float4 query = *reinterpret_cast<const float4*>(q + i * row_floats + d);
      dot[i][0] = __fmaf_rn(query.x, x[0], dot[i][0]);
      dot[i][1] = __fmaf_rn(query.x, y[0], dot[i][1]);
      dot[i][0] = __fmaf_rn(query.y, x[1], dot[i][0]);
      dot[i][1] = __fmaf_rn(query.y, y[1], dot[i][1]);
      dot[i][0] = __fmaf_rn(query.z, x[2], dot[i][0]);
      dot[i][1] = __fmaf_rn(query.z, y[2], dot[i][1]);
      dot[i][0] = __fmaf_rn(query.w, x[3], dot[i][0]);
      dot[i][1] = __fmaf_rn(query.w, y[3], dot[i][1]);
    }
  }
  for (; d < head_dim; ++d) {
    const float x = k0[d * kKvBlock], y = k1[d * kKvBlock];
#pragma unroll
    for (int i = 0; i < QW; ++i) {
      dot[i][0] = __fmaf_rn(q[i * row_floats + d], x, dot[i][0]);
      dot[i][1] = __fmaf_rn(q[i * row_floats + d], y, dot[i][1]);
    }
  }
#pragma unroll
  for (int i = 0; i < QW; ++i) {
    p[i * kKeys + lane] = dot[i][0];
    p[i * kKeys + lane + 32] = dot[i][1];
  }
}

// Turns the products into weights, for four queries at a time. Each lane handles its own keys.
template <int QW>
__device__ void merge(const Attention& a, std::int64_t block, float* p, QueryState& mine) {
  constexpr int kTogether = 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int i = 0; i < QW; i += kTogether) {
    Scores s[kTogether];
#pragma unroll
    for (int u = 0; u < kTogether; ++u) {
      const std::int64_t from = __shfl_sync(kAllLanes, mine.first, i + u) - block;
      const std::int64_t to = __shfl_sync(kAllLanes, mine.end, i + u) - block;
      s[u].any = to > 0 && from < kKeys;
      s[u].seen0 = from <= lane && lane < to;
      s[u].seen1 = from <= lane + 32 && lane + 32 < to;
      s[u].max = __shfl_sync(kAllLanes, mine.max, i + u);
      s[u].sum = __shfl_sync(kAllLanes, mine.sum, i + u);
      s[u].score0 = scored(a, p[(i + u) * kKeys + lane]);
      s[u].score1 = scored(a, p[(i + u) * kKeys + lane + 32]);
    }
    merge_scores(s);
#pragma unroll
    for (int u = 0; u < kTogether; ++u) {
      p[(i + u) * kKeys + lane] = s[u].score0;
      p[(i + u) * kKeys + lane + 32] = s[u].score1;
      if (lane != i + u) continue;
      mine.max = s[u].max;
      mine.sum = s[u].sum;
      mine.alpha = s[u].alpha;
    }
  }
}

// Continues the output chains over all 64 keys.
template <int QW, int J>
__device__ void add_values(
    const float* p, const float* v, int head_dim, const int (&d)[J], float (&out)[QW][J]) {
#pragma unroll 1
  for (int key = 0; key < kKeys; key += 4) {
    float x[4][J];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < J; ++j)
        x[i][j] = v[(key + i) * head_dim + d[j]];
#pragma unroll
    for (int i = 0; i < QW; ++i) {
      const float4 weight = *reinterpret_cast<const float4*>(p + i * kKeys + key);
#pragma unroll
      for (int j = 0; j < J; ++j)
        out[i][j] = __fmaf_rn(weight.x, x[0][j], out[i][j]);
#pragma unroll
      for (int j = 0; j < J; ++j)
        out[i][j] = __fmaf_rn(weight.y, x[1][j], out[i][j]);
#pragma unroll
      for (int j = 0; j < J; ++j)
        out[i][j] = __fmaf_rn(weight.z, x[2][j], out[i][j]);
#pragma unroll
      for (int j = 0; j < J; ++j)
        out[i][j] = __fmaf_rn(weight.w, x[3][j], out[i][j]);
    }
  }
}

// Continues the output chains over keys [begin, end) of the block; each query uses only those that
// it sees.
template <int QW, int J>
__device__ void add_some_values(const float* p,
                                const float* v,
                                int head_dim,
                                const int (&d)[J],
                                std::int64_t block,
                                int begin,
                                int end,
                                const QueryState& mine,
                                float (&out)[QW][J]) {
#pragma unroll 1
  for (int key = begin; key < end; ++key) {
    const std::int64_t at = block + key;
    const unsigned seen = __ballot_sync(kAllLanes, mine.first <= at && at < mine.end);
    float x[J];
#pragma unroll
    for (int j = 0; j < J; ++j)
      x[j] = v[key * head_dim + d[j]];
#pragma unroll
    for (int i = 0; i < QW; ++i) {
      if ((seen >> i & 1u) == 0) continue;
      const float weight = p[i * kKeys + key];
#pragma unroll
      for (int j = 0; j < J; ++j)
        out[i][j] = __fmaf_rn(weight, x[j], out[i][j]);
    }
  }
}

template <int QW, int J>
__global__ void __launch_bounds__(kThreads, QW <= 4 && J <= 4 ? 2 : 1)
    rows_kernel(Attention a, const AttentionItem* items) {
  const ItemView item(a, items[blockIdx.x]);
  if (item.one_row() || item.rows <= 0) return;
  const int me = static_cast<int>(threadIdx.x), warp = me / 32, lane = me % 32;
  const int head_dim = static_cast<int>(a.head_dim), row_floats = (head_dim + 3) / 4 * 4;
  auto* const q = reinterpret_cast<float*>(dynamic_shared());         // [queries][row_floats]
  float* const p = q + kWarps * QW * row_floats + warp * QW * kKeys;  // [QW][64], the warp's
  float* const k = q + kWarps * QW * (row_floats + kKeys);
  float* const v = k + kBlocksOfKeys * key_stride(head_dim);
  const float* const own = q + warp * QW * row_floats;
  int d[J];  // lanes without a dimension compute dimension 0 and discard it
#pragma unroll
  for (int j = 0; j < J; ++j)
    d[j] = lane + 32 * j < head_dim ? lane + 32 * j : 0;

  const int all = item.rows * item.heads;
  for (int chunk = static_cast<int>(blockIdx.y) * kWarps * QW; chunk < all;
       chunk += static_cast<int>(gridDim.y) * kWarps * QW) {
    const int count = all - chunk < kWarps * QW ? all - chunk : kWarps * QW;
    const std::int64_t first = first_key(item.keys + chunk / item.heads, a.window);
    const std::int64_t end = item.keys + (chunk + count - 1) / item.heads;
    const std::int64_t base = first / kKeys * kKeys;
    __syncthreads();  // the previous chunk no longer needs the queries
    fetch_blocks(a, item, static_cast<const float*>(a.k_pool.data), base, first, end, k,
                 key_stride(head_dim));
    fetch_blocks(a, item, static_cast<const float*>(a.v_pool.data), base, first, end, v,
                 value_stride(head_dim));
    for (int i = me; i < count * head_dim; i += kThreads) {
      const int query = i / head_dim, at = i % head_dim;
      const std::int64_t row = item.first_row + (chunk + query) / item.heads;
      const std::int64_t head = item.first_head + (chunk + query) % item.heads;
      q[query * row_floats + at] = a.q[row * a.ldq + head * head_dim + at];
    }
    const int queries = count - warp * QW < QW ? count - warp * QW : QW;  // of the warp; or <= 0
    QueryState mine;
    if (lane < queries) {
      mine.end = item.keys + (chunk + warp * QW + lane) / item.heads;
      mine.first = first_key(mine.end, a.window);
    }
    // The keys that all of the warp's queries see, and the keys that any of them sees.
    const std::int64_t last_first =
        __shfl_sync(kAllLanes, mine.first, queries > 0 ? queries - 1 : 0);
    const std::int64_t last_end = __shfl_sync(kAllLanes, mine.end, queries > 0 ? queries - 1 : 0);
    const std::int64_t first_first = __shfl_sync(kAllLanes, mine.first, 0);
    const std::int64_t first_end = __shfl_sync(kAllLanes, mine.end, 0);
    float out[QW][J];
#pragma unroll
    for (int i = 0; i < QW; ++i)
#pragma unroll
      for (int j = 0; j < J; ++j)
        out[i][j] = 0.0f;
    for (std::int64_t block = base; block < end; block += kKeys) {
      const bool busy = queries > 0 && block < last_end && block + kKeys > first_first;
      copy_async_wait<1>();
      __syncthreads();
      if (busy) dots<QW>(own, row_floats, k, head_dim, p);
      __syncthreads();
      fetch_blocks(a, item, static_cast<const float*>(a.k_pool.data), block + kKeys, first, end, k,
                   key_stride(head_dim));
      if (busy) {
        merge<QW>(a, block, p, mine);
#pragma unroll
        for (int i = 0; i < QW; ++i) {
          const float alpha = __shfl_sync(kAllLanes, mine.alpha, i);
#pragma unroll
          for (int j = 0; j < J; ++j)
            out[i][j] = out[i][j] * alpha;
        }
      }
      copy_async_wait<1>();
      __syncthreads();
      if (busy && block >= last_first && block + kKeys <= first_end) {
        add_values<QW, J>(p, v, head_dim, d, out);
      } else if (busy) {
        const std::int64_t from = first_first - block, to = last_end - block;
        add_some_values<QW, J>(p, v, head_dim, d, block, from > 0 ? static_cast<int>(from) : 0,
                               to < kKeys ? static_cast<int>(to) : kKeys, mine, out);
      }
      __syncthreads();
      fetch_blocks(a, item, static_cast<const float*>(a.v_pool.data), block + kKeys, first, end, v,
                   value_stride(head_dim));
    }
    const float inverse = 1.0f / mine.sum;
#pragma unroll
    for (int i = 0; i < QW; ++i) {
      const float factor = __shfl_sync(kAllLanes, inverse, i);
      if (i >= queries) continue;
      const int query = chunk + warp * QW + i;
      float* const to = a.out + (item.first_row + query / item.heads) * a.ldo +
                        (item.first_head + query % item.heads) * head_dim;
#pragma unroll
      for (int j = 0; j < J; ++j)
        if (lane + 32 * j < head_dim) to[lane + 32 * j] = out[i][j] * factor;
    }
    if (a.lse != nullptr && lane < queries) {
      const int query = chunk + warp * QW + lane;
      a.lse[(item.first_row + query / item.heads) * a.heads + item.first_head +
            query % item.heads] = mine.max + log_f32(mine.sum);
    }
  }
}

template <int QW, int J>
void start(const Attention& a, const AttentionItem* items, std::int64_t count) {
  const std::int64_t queries = kItemRows * (a.heads / a.kv_heads);
  launch("attention", rows_kernel<QW, J>,
         dim3(static_cast<unsigned>(count), blocks_for(queries, kWarps * QW)), kThreads,
         shared_bytes<QW>(a), a, items);
}

template <int QW>
bool fits(const Attention& a) {
  return shared_bytes<QW>(a) <= current_device().shared_bytes;
}

template <int QW>
void start_for(const Attention& a, const AttentionItem* items, std::int64_t count) {
  if (a.head_dim <= 64) return start<QW, 2>(a, items, count);
  if (a.head_dim <= 128) return start<QW, 4>(a, items, count);
  if constexpr (QW <= 8) start<QW, 8>(a, items, count);
}

}  // namespace

// Chooses the queries per warp: enough to keep all eight warps busy with an item of kItemRows rows,
// within the limits of registers and shared memory.
void attention_of_rows(const Attention& a, const AttentionItem* items, std::int64_t count) {
  const std::int64_t group = a.heads / a.kv_heads;
  if (group >= 4 && a.head_dim <= 128 && fits<16>(a)) return start_for<16>(a, items, count);
  if (group >= 2 && fits<8>(a)) return start_for<8>(a, items, count);
  if (!fits<4>(a))
    check(cudaErrorInvalidValue, "attention: too little shared memory for heads of this size");
  start_for<4>(a, items, count);
}

}  // namespace troupe::kernels::cuda
