// The gradient of attention, in two kernels because its sums run in two directions. dq of a query
// is a chain over the keys, so a thread block takes 64 queries and loops over the keys. dk and dv
// of a key are chains over the queries, so a thread block takes a KV block of 16 keys and loops
// over the queries of all segments that hold it, in the unit's order. The weights are therefore
// computed twice (7 products instead of 5). Bound by multiply-adds and shared memory in turn:
// a thread computes 4 x 2 (2 x 2) scores, then 4 dimensions of several queries or keys.
// Only the device knows the contents of a unit, so a fixed number of thread blocks per unit divide
// its items among themselves.
#include "kernels/cuda/attention_query.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/together.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kSlots = static_cast<int>(kKvBlock);

// ---- dq ----

constexpr int kQueryThreads = 256;
constexpr int kQueries = 64, kKeys = 2 * kSlots;  // per tile

template <int kDim>
struct QueryShared {
  static constexpr int kWidth = kDim + kRowPad;
  float q[kQueries * kWidth], dout[kQueries * kWidth];
  float keys[kKeys * kWidth], values[kKeys * kWidth];
  float ds[kKeys][kQueries + 4];
  float delta[kQueries], lse[kQueries];
  int begin[kQueries], end[kQueries];  // the keys that a query sees
};

// Adds ds k to dq of the thread's queries, for its 4 dimensions, over a tile's keys in order.
template <int kDim, bool kMasked>
__device__ void add_keys(const QueryShared<kDim>& shared,
                         int first_key_of_tile,
                         int count,
                         int first_query,
                         int d,
                         float (&dq)[kDim / 16][4]) {
  [[maybe_unused]] constexpr int kTogether =
      kDim == 128 ? 1 : 2;  // keys at a time; limited by registers
#pragma unroll kTogether
  for (int key = 0; key < count; ++key) {
    const float4 k =
        *reinterpret_cast<const float4*>(shared.keys + key * QueryShared<kDim>::kWidth + d);
#pragma unroll
    for (int part = 0; part < kDim / 64; ++part) {
      const float4 four = *reinterpret_cast<const float4*>(&shared.ds[key][first_query + 4 * part]);
      const float ds[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = 4 * part + i;
        if constexpr (kMasked) {
          const int position = first_key_of_tile + key;
          if (position < shared.begin[first_query + at] || position >= shared.end[first_query + at])
            continue;
        }
        dq[at][0] = __fmaf_rn(ds[i], k.x, dq[at][0]);
        dq[at][1] = __fmaf_rn(ds[i], k.y, dq[at][1]);
        dq[at][2] = __fmaf_rn(ds[i], k.z, dq[at][2]);
        dq[at][3] = __fmaf_rn(ds[i], k.w, dq[at][3]);
      }
    }
  }
}

// Computes ds for each query and key of a tile; 0 where the query does not see the key.
template <int kDim>
__device__ void score_tile(const UnitView& unit, QueryShared<kDim>& shared, int first_key_of_tile) {
  constexpr int kWidth = QueryShared<kDim>::kWidth;
  const Attention& a = unit.b.forward;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int query = warp % 2 * 8 + lane / 4, key = warp / 2 * 4 + lane % 4;
  float dot[4][2], dp[4][2];
  dots<4, 2, 16, 16, kWidth>(static_cast<int>(a.head_dim), shared.q + query * kWidth,
                             shared.dout + query * kWidth, shared.keys + key * kWidth,
                             shared.values + key * kWidth, dot, dp);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int at = query + 16 * i;
    const float delta = shared.delta[at], lse = shared.lse[at];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int position = first_key_of_tile + key + 16 * j;
      const bool sees = position >= shared.begin[at] && position < shared.end[at];
      const Weight weight = weight_of(a, dot[i][j], dp[i][j], delta, lse);
      shared.ds[key + 16 * j][at] = sees ? weight.ds : 0.0f;
    }
  }
}

template <int kDim>
__device__ void query_item(const UnitView& unit,
                           const Segment& segment,
                           int first,
                           QueryShared<kDim>& shared) {
  constexpr int kWidth = QueryShared<kDim>::kWidth;
  const Attention& a = unit.b.forward;
  const int left = segment.rows * unit.group - first;
  const int count = left < kQueries ? left : kQueries;
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // the last item's numbers are no longer needed
  load_queries<kQueryThreads, kQueries, kWidth>(unit, segment, first, count, shared.q, shared.dout,
                                                shared.delta, shared.lse);
  if (thread < kQueries) {
    const int keys = unit.keys(segment, first + thread);
    shared.begin[thread] = thread < count ? unit.first_of(keys) : 0;
    shared.end[thread] = thread < count ? keys : 0;
  }
  __syncthreads();
  const int begin = shared.begin[0] / kSlots * kSlots, end = shared.end[count - 1];
  const int all_from = shared.begin[count - 1], all_to = shared.end[0];  // seen by all queries

  const std::int32_t* const table = a.block_table + segment.table;
  constexpr int kParts = kDim / 4;  // threads per query
  const int d = thread % kParts * 4, own = thread / kParts * (kDim / 16);
  float dq[kDim / 16][4] = {};
  for (int key = begin; key < end; key += kKeys) {
    for (int block = 0; block < 2 && key + block * kSlots < end; ++block)
      load_block<kQueryThreads, kWidth>(unit, table[key / kSlots + block],
                                        shared.keys + block * kSlots * kWidth,
                                        shared.values + block * kSlots * kWidth);
    __syncthreads();
    score_tile(unit, shared, key);
    __syncthreads();
    if (d < a.head_dim) {
      if (key >= all_from && key + kKeys <= all_to)
        add_keys<kDim, false>(shared, key, kKeys, own, d, dq);
      else
        add_keys<kDim, true>(shared, key, end - key < kKeys ? end - key : kKeys, own, d, dq);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kDim / 16; ++i) {
    if (own + i >= count) continue;
    const int query = first + own + i;
    float* const out =
        unit.b.dq + unit.row(segment, query) * unit.b.lddq + unit.head(query) * a.head_dim;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (d + j < a.head_dim) out[d + j] = dq[i][j];
  }
}

// The index of the first item that thread block `mine` of `workers` does, among items that come
// after `before` others: each does the items whose overall number is `mine` modulo `workers`.
__device__ int first_own(int before, int mine, int workers) {
  return (mine - before % workers + workers) % workers;
}

template <int kDim>
__global__ void __launch_bounds__(kQueryThreads, kDim > 128 ? 1 : 2)
    query_kernel(const __grid_constant__ AttentionBackward b, const AttentionUnit* units) {
  auto& shared = *reinterpret_cast<QueryShared<kDim>*>(dynamic_shared());
  const AttentionUnit item = units[blockIdx.x];
  const UnitView unit(b, item.kv_head);
  const int mine = static_cast<int>(blockIdx.y), workers = static_cast<int>(gridDim.y);
  int before = 0;
  for (std::int32_t s = item.segment_begin; s < item.segment_end; ++s) {
    const Segment& segment = b.forward.segments[s];  // reread where needed, to save registers
    const int tiles = (segment.rows * unit.group + kQueries - 1) / kQueries;
    for (int i = first_own(before, mine, workers); i < tiles; i += workers)
      query_item<kDim>(unit, segment, (tiles - 1 - i) * kQueries, shared);  // longest first
    before += tiles;
  }
}

// ---- dk and dv ----

constexpr int kKeyThreads = 128;
constexpr int kStep = 32;  // queries at a time

template <int kDim>
struct KeyShared {
  static constexpr int kWidth = kDim + kRowPad;
  float q[kStep * kWidth], dout[kStep * kWidth];
  float keys[kSlots * kWidth], values[kSlots * kWidth];
  float p[kStep][kSlots], ds[kStep][kSlots];
  float delta[kStep], lse[kStep];
  int found;
};

// The index of `block` in the segment's table, or -1 if the segment does not use it. All threads
// must call it.
__device__ int index_of(const Attention& a,
                        const Segment& segment,
                        std::int32_t block,
                        int& found) {
  const UsedBlocks used(segment, a.window);
  __syncthreads();  // all threads have read the last result
  if (threadIdx.x == 0) found = -1;
  __syncthreads();
  for (int i = used.first + static_cast<int>(threadIdx.x); i <= used.last; i += kKeyThreads)
    if (a.block_table[segment.table + i] == block) found = i;
  __syncthreads();
  return found;
}

// Computes p and ds of the queries in shared memory with the 16 keys from `position` on.
template <int kDim>
__device__ void score_step(const UnitView& unit,
                           const Segment& segment,
                           int first,
                           int position,
                           KeyShared<kDim>& shared) {
  constexpr int kWidth = KeyShared<kDim>::kWidth;
  const Attention& a = unit.b.forward;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int query = warp % 2 * 8 + lane / 4, key = warp / 2 * 4 + lane % 4;
  float dot[2][2], dp[2][2];
  dots<2, 2, 16, 8, kWidth>(static_cast<int>(a.head_dim), shared.q + query * kWidth,
                            shared.dout + query * kWidth, shared.keys + key * kWidth,
                            shared.values + key * kWidth, dot, dp);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int at = query + 16 * i;
    const int keys = unit.keys(segment, first + at), begin = unit.first_of(keys);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int mine = position + key + 8 * j;
      const bool sees = mine >= begin && mine < keys;
      const Weight weight = weight_of(a, dot[i][j], dp[i][j], shared.delta[at], shared.lse[at]);
      shared.p[at][key + 8 * j] = sees ? weight.p : 0.0f;
      shared.ds[at][key + 8 * j] = sees ? weight.ds : 0.0f;
    }
  }
}

template <int kDim>
struct KeySums {
  static constexpr int kOwn = kDim / 32;  // keys per thread
  float dk[kOwn][4], dv[kOwn][4];
};

// Adds the queries of one segment, in order. `index`: that of the KV block in the segment's table.
template <int kDim>
__device__ void add_segment(const UnitView& unit,
                            const Segment& segment,
                            int index,
                            KeyShared<kDim>& shared,
                            KeySums<kDim>& sums) {
  constexpr int kWidth = KeyShared<kDim>::kWidth, kOwn = KeySums<kDim>::kOwn;
  const Attention& a = unit.b.forward;
  const int position = index * kSlots;
  // The rows that see any of the keys: from the row at the first key's position on. With a window,
  // up to the last row whose window starts in or before this block.
  int begin = position - segment.first_position, end = segment.rows;
  begin = begin > 0 ? begin : 0;
  if (a.window > 0) {
    const std::int64_t last = position + kKvBlock + a.window - 1 - segment.first_position;
    end = static_cast<int>(end < last ? end : last);
  }
  const int thread = static_cast<int>(threadIdx.x);
  const int d = thread % (kDim / 4) * 4, own = thread / (kDim / 4) * kOwn;
  for (int first = begin * unit.group; first < end * unit.group; first += kStep) {
    const int left = end * unit.group - first;
    const int count = left < kStep ? left : kStep;
    __syncthreads();  // the last step's numbers are no longer needed
    load_queries<kKeyThreads, kStep, kWidth>(unit, segment, first, count, shared.q, shared.dout,
                                             shared.delta, shared.lse);
    __syncthreads();
    score_step(unit, segment, first, position, shared);
    __syncthreads();
    if (d >= a.head_dim) continue;
#pragma unroll 2
    for (int i = 0; i < count; ++i) {
      const float4 q = *reinterpret_cast<const float4*>(shared.q + i * kWidth + d);
      const float4 dout = *reinterpret_cast<const float4*>(shared.dout + i * kWidth + d);
      float all_ds[kOwn], all_p[kOwn];
      read_together(&shared.ds[i][own], all_ds);
      read_together(&shared.p[i][own], all_p);
#pragma unroll
      for (int key = 0; key < kOwn; ++key) {
        const float ds = all_ds[key], p = all_p[key];
        sums.dk[key][0] = __fmaf_rn(ds, q.x, sums.dk[key][0]);
        sums.dk[key][1] = __fmaf_rn(ds, q.y, sums.dk[key][1]);
        sums.dk[key][2] = __fmaf_rn(ds, q.z, sums.dk[key][2]);
        sums.dk[key][3] = __fmaf_rn(ds, q.w, sums.dk[key][3]);
        sums.dv[key][0] = __fmaf_rn(p, dout.x, sums.dv[key][0]);
        sums.dv[key][1] = __fmaf_rn(p, dout.y, sums.dv[key][1]);
        sums.dv[key][2] = __fmaf_rn(p, dout.z, sums.dv[key][2]);
        sums.dv[key][3] = __fmaf_rn(p, dout.w, sums.dv[key][3]);
      }
    }
  }
}

// Does the KV block at `index` of segment s's table, unless an earlier segment of the unit also
// holds it and so handles it.
template <int kDim>
__device__ void key_item(const UnitView& unit,
                         const AttentionUnit& item,
                         std::int32_t s,
                         int index,
                         KeyShared<kDim>& shared) {
  const Attention& a = unit.b.forward;
  const Segment segment = a.segments[s];
  const std::int32_t block = a.block_table[segment.table + index];
  for (std::int32_t earlier = item.segment_begin; earlier < s; ++earlier)
    if (index_of(a, a.segments[earlier], block, shared.found) >= 0) return;

  constexpr int kOwn = KeySums<kDim>::kOwn;
  const int thread = static_cast<int>(threadIdx.x);
  const int d = thread % (kDim / 4) * 4, own = thread / (kDim / 4) * kOwn;
  float* const dk = unit.b.dk_pool + unit.pool_at(block);
  float* const dv = unit.b.dv_pool + unit.pool_at(block);
  KeySums<kDim> sums;
#pragma unroll
  for (int key = 0; key < kOwn; ++key)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const bool there = d + j < a.head_dim;
      sums.dk[key][j] = there ? dk[(d + j) * kSlots + own + key] : 0.0f;
      sums.dv[key][j] = there ? dv[(own + key) * a.head_dim + d + j] : 0.0f;
    }
  __syncthreads();  // the last item's keys are no longer needed
  load_block<kKeyThreads, KeyShared<kDim>::kWidth>(unit, block, shared.keys, shared.values);
  add_segment(unit, segment, index, shared, sums);
  for (std::int32_t later = s + 1; later < item.segment_end; ++later) {
    const Segment other = a.segments[later];
    const int at = index_of(a, other, block, shared.found);
    if (at >= 0) add_segment(unit, other, at, shared, sums);
  }
#pragma unroll
  for (int key = 0; key < kOwn; ++key)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (d + j >= a.head_dim) continue;
      dk[(d + j) * kSlots + own + key] = sums.dk[key][j];
      dv[(own + key) * a.head_dim + d + j] = sums.dv[key][j];
    }
}

template <int kDim>
__global__ void __launch_bounds__(kKeyThreads, kDim > 128 ? 2 : 3)
    key_kernel(const __grid_constant__ AttentionBackward b, const AttentionUnit* units) {
  auto& shared = *reinterpret_cast<KeyShared<kDim>*>(dynamic_shared());
  const AttentionUnit item = units[blockIdx.x];
  const UnitView unit(b, item.kv_head);
  const int mine = static_cast<int>(blockIdx.y), workers = static_cast<int>(gridDim.y);
  int before = 0;
  for (std::int32_t s = item.segment_begin; s < item.segment_end; ++s) {
    const UsedBlocks used(b.forward.segments[s], b.forward.window);
    const int blocks = used.last - used.first + 1;
    for (int i = first_own(before, mine, workers); i < blocks; i += workers)
      key_item<kDim>(unit, item, s, used.first + i, shared);
    before += blocks;
  }
}

template <int kDim>
void start(const AttentionBackward& a, const AttentionUnit* units, std::int64_t count) {
  // Thread blocks per unit, so that each multiprocessor gets 16 over all units.
  const std::int64_t wanted =
      (std::int64_t{current_device().multiprocessors} * 16 + count - 1) / count;
  const auto workers = static_cast<unsigned>(wanted < 4 ? 4 : wanted < 65535 ? wanted : 65535);
  const dim3 grid(static_cast<unsigned>(count), workers);
  launch("attention_backward", query_kernel<kDim>, grid, kQueryThreads, sizeof(QueryShared<kDim>),
         a, units);
  launch("attention_backward", key_kernel<kDim>, grid, kKeyThreads, sizeof(KeyShared<kDim>), a,
         units);
}

}  // namespace

void attention_backward(const AttentionBackward& a,
                        const AttentionUnit* units,
                        std::int64_t count) {
  if (count <= 0) return;
  if (a.forward.head_dim <= 64)
    start<64>(a, units, count);
  else if (a.forward.head_dim <= 128)
    start<128>(a, units, count);
  else
    start<256>(a, units, count);
}

}  // namespace troupe::kernels::cuda
