// Tiles of 64 keys and values in bfloat16, and tiles of queries next to them, in shared memory: how
// attention_splits.cu copies them there. Rows are padded to an odd number of pieces of 16 bytes, so
// that eight of them lie in different banks.
#pragma once

#include "kernels/cuda/attention_keys.cuh"
#include "kernels/cuda/bf16.cuh"

namespace troupe::kernels::cuda::splits {

inline constexpr int kQueries = 16;                // of a tile
inline constexpr int kKeyPieces = kKeys / 8;       // pieces of 8 numbers in a row of keys
inline constexpr int kKeyStride = kKeyPieces + 1;  // pieces from a row to the next

// Sizes that follow from the head.
struct Head {
  int dim, steps, stride;  // dimensions; steps of 16 of them; pieces from a row to the next
  __host__ __device__ explicit Head(std::int64_t head_dim)
      : dim(static_cast<int>(head_dim)), steps((dim + 15) / 16), stride(2 * steps + 1) {}
  __host__ __device__ int key_pieces() const { return steps * 16 * kKeyStride; }
  __host__ __device__ int value_pieces() const { return kKeys * stride; }
  __host__ __device__ int tile_pieces() const { return key_pieces() + value_pieces(); }
};

// Keys [first, end).
struct KeyRange {
  int first, end;
};

// Starts the copies of a tile of which each key is there, for heads of kDim dimensions by kThreads
// threads. A thread's pieces lie fixed distances apart.
template <int kDim, int kThreads>
__device__ void fetch_whole_tile(const Attention& a, const ItemView& item, int tile, uint4* to) {
  constexpr int kSlots = static_cast<int>(kKvBlock), kStride = kDim / 8 + 1;
  constexpr int kRowPieces = kDim / 8, kRowsApart = kThreads / kRowPieces;  // of values
  constexpr int kPieces = kSlots * kRowPieces;                              // of a block
  static_assert(kPieces % kThreads == 0 && kThreads % kRowPieces == 0);
  const int me = static_cast<int>(threadIdx.x);
  uint4* const keys = to + me / 2 * kKeyStride + me % 2;
  uint4* const values =
      to + kDim * kKeyStride + me / kRowPieces * kStride + me % kRowPieces;
  const std::int32_t* const table = item.table + tile / kSlots;
  std::int32_t entry[kBlocksOfKeys];  // loads all entries before using one
#pragma unroll
  for (int i = 0; i < kBlocksOfKeys; ++i)
    entry[i] = table[i];
#pragma unroll
  for (int i = 0; i < kBlocksOfKeys; ++i) {
    const std::int64_t from = (entry[i] * a.kv_heads + item.kv_head) * (kPieces * 8) + me * 8;
    const auto* const k = static_cast<const std::uint16_t*>(a.k_pool.data) + from;
    const auto* const v = static_cast<const std::uint16_t*>(a.v_pool.data) + from;
#pragma unroll
    for (int at = 0; at < kPieces; at += kThreads)
      copy_async(keys + i * 2 + at / 2 * kKeyStride, k + at * 8);
#pragma unroll
    for (int at = 0; at < kPieces; at += kThreads)
      copy_async(values + (i * kSlots + at / kThreads * kRowsApart) * kStride, v + at * 8);
  }
  copy_async_commit();
}

// Starts the copies of keys and values [tile, tile + 64). Values that no row sees become zero:
// their weights are zero, but what they hold may not be a number. Other keys stay as they are.
template <int kDim, int kThreads>
__device__ void fetch_tile(const Attention& a,
                           const ItemView& item,
                           const Head& head,
                           const KeyRange& seen,
                           int tile,
                           uint4* to) {
  if (head.dim == kDim && seen.first <= tile && tile + kKeys <= seen.end)
    return fetch_whole_tile<kDim, kThreads>(a, item, tile, to);
  constexpr int kSlots = static_cast<int>(kKvBlock);
  const int me = static_cast<int>(threadIdx.x);
  auto* const values = to + head.key_pieces();
  const bool pieces = head.dim % 8 == 0;
#pragma unroll
  for (int i = 0; i < kBlocksOfKeys; ++i) {
    const int key = tile + i * kSlots;
    const bool there = key + kSlots > seen.first && key < seen.end;
    const std::int64_t block = there ? item.table[key / kSlots] : 0;
    const std::int64_t base = (block * a.kv_heads + item.kv_head) * head.dim * kSlots;
    const auto* const k = static_cast<const std::uint16_t*>(a.k_pool.data) + base;
    const auto* const v = static_cast<const std::uint16_t*>(a.v_pool.data) + base;
    for (int at = me; there && at < head.dim * 2; at += kThreads)
      copy_async(to + at / 2 * kKeyStride + i * 2 + at % 2, k + at * 8);
    for (int at = me; at < kSlots * kDim / 8; at += kThreads) {
      const int slot = at / (kDim / 8), piece = at % (kDim / 8), d = piece * 8;
      if (d >= head.dim) continue;
      const bool valid = key + slot >= seen.first && key + slot < seen.end;
      uint4* const place = values + (i * kSlots + slot) * head.stride + piece;
      if (pieces) {
        copy_async(place, valid ? v + slot * head.dim + d : v, valid);
      } else {
        for (int j = 0; j < 8 && d + j < head.dim; ++j)
          reinterpret_cast<std::uint16_t*>(place)[j] = valid ? v[slot * head.dim + d + j] : 0;
      }
    }
  }
  copy_async_commit();
}

// Zeros the dimensions beyond the head's in a tile; no copy touches them.
__device__ inline void zero_padding(const Head& head, uint4* tile) {
  const int me = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  auto* const numbers = reinterpret_cast<std::uint16_t*>(tile);
  const int more = head.steps * 16 - head.dim;
  for (int at = me; at < more * kKeys; at += threads)
    numbers[(head.dim + at / kKeys) * kKeyStride * 8 + at % kKeys] = 0;
  for (int at = me; at < more * kKeys; at += threads)
    numbers[head.key_pieces() * 8 + at % kKeys * head.stride * 8 + head.dim + at / kKeys] = 0;
}

// Rounds `count` queries of the item from `first` on to bfloat16; further ones up to `room` are
// zero.
__device__ inline void load_queries(const Attention& a,
                                    const ItemView& item,
                                    const Head& head,
                                    int first,
                                    int count,
                                    int room,
                                    uint4* to) {
  const int pairs = head.steps * 8;
  auto* const words = reinterpret_cast<std::uint32_t*>(to);
  for (int i = static_cast<int>(threadIdx.x); i < room * pairs; i += static_cast<int>(blockDim.x)) {
    const int query = i / pairs, d = i % pairs * 2;
    float x[2] = {0.0f, 0.0f};
    if (query < count) {
      const float* const from = a.q + (item.first_row + (first + query) / item.heads) * a.ldq +
                                (item.first_head + (first + query) % item.heads) * head.dim;
      if (d < head.dim) x[0] = from[d];
      if (d + 1 < head.dim) x[1] = from[d + 1];
    }
    words[query * head.stride * 4 + d / 2] = rounded_pair(x[0], x[1]);
  }
}

}  // namespace troupe::kernels::cuda::splits
