// Attention of few rows in f32 (decoding a few sequences): attention.cu gives an item one thread
// block, which would leave most multiprocessors idle. Scores do not depend on each other, so many
// blocks compute them first, 64 keys each, and leave them in the workspace. The rest is chains over
// the keys, of each head's softmax and of each of its dimensions: a block takes 32 dimensions of an
// item. For each head one of its warps turns 64 scores into weights while another adds the values
// of the 64 before, and two more warps copy values. Bound by the chains: 4 cycles a key.
#include "kernels/cuda/attention_dots.cuh"
#include "kernels/cuda/attention_spread.cuh"
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kScoreThreads = 256;
constexpr int kSlice = 32;  // dimensions of a block
constexpr int kSlots = 6;   // tiles of values in shared memory
constexpr int kTileFloats = kKeys * kSlice;
constexpr int kCopyThreads = 64;
constexpr int kHeadsMost = (1024 - kCopyThreads) / 64;
constexpr int kPieces = kSlice / 4;  // of 16 bytes, of a key

std::size_t score_bytes(const Attention& a) {
  return (static_cast<std::size_t>(kOneRowHeads * query_floats(a.head_dim)) +
          static_cast<std::size_t>((a.head_dim + 1) * kKeys)) *
         sizeof(float);
}

__global__ void __launch_bounds__(kScoreThreads)
    scores_kernel(Attention a, const AttentionItem* items, Spread spread) {
  const ItemView item(a, items[blockIdx.x]);
  if (!item.one_row()) return;
  const KeyTiles tiles(a, item);
  if (!spread.holds(tiles)) return;
  const int head_dim = static_cast<int>(a.head_dim), count = tiles.count();
  const RowQueries queries(reinterpret_cast<float*>(dynamic_shared()), head_dim);
  float* const k = queries.q + kOneRowHeads * queries.row_floats;
  for (int tile = static_cast<int>(blockIdx.y); tile < count; tile += static_cast<int>(gridDim.y)) {
    fetch_blocks(a, item, static_cast<const float*>(a.k_pool.data), tiles.begin_of(tile),
                 tiles.first, tiles.end, k, key_stride(head_dim));
    if (tile == static_cast<int>(blockIdx.y)) queries.load(a, item);
    copy_async_wait<0>();
    __syncthreads();
    products_of_tile(queries, k, head_dim, item.heads, tiles.from(tile), tiles.to(tile),
                     [&](int head, int key, float dot) {
                       spread.of(blockIdx.x, head)[tile * kKeys + key] = scored(a, dot);
                     });
    __syncthreads();  // no thread needs these keys any more
  }
}

// One head's weights of a tile, and what earlier values are multiplied by.
struct TileWeights {
  float weights[2][kHeadsMost][kKeys];
  float alphas[2][kHeadsMost];
  float inverses[kHeadsMost];  // 1 / sum, at the end
};

// The warp that makes the weights of one head, tile by tile. Scores of the next tile are read ahead.
class WeightWarp {
 public:
  __device__ WeightWarp(const KeyTiles& tiles, const float* scores)
      : tiles_(tiles), scores_(scores), lane_(static_cast<int>(threadIdx.x) % 32) {
    softmax_[0].max = -infinity();
    read(0);
  }
  // The next tile's, into the half of `to` that it belongs in.
  __device__ void make(int tile, TileWeights& to, int head) {
    softmax_[0].any = true;
    softmax_[0].seen0 = seen(tile, lane_), softmax_[0].seen1 = seen(tile, lane_ + 32);
    softmax_[0].score0 = next0_, softmax_[0].score1 = next1_;
    if (tile + 1 < tiles_.count()) read(tile + 1);
    merge_scores(softmax_);
    float* const weights = to.weights[tile % 2][head];
    weights[lane_] = softmax_[0].score0;
    weights[lane_ + 32] = softmax_[0].score1;
    if (lane_ == 0) to.alphas[tile % 2][head] = softmax_[0].alpha;
  }
  __device__ float sum() const { return softmax_[0].sum; }
  __device__ float log_sum() const { return softmax_[0].max + log_f32(softmax_[0].sum); }

 private:
  __device__ bool seen(int tile, int key) const {
    return tiles_.from(tile) <= key && key < tiles_.to(tile);
  }
  // Leaves scores of keys that are not seen as they are: a choice between the two would wait for the
  // memory at once.
  __device__ void read(int tile) {
    if (seen(tile, lane_)) next0_ = scores_[tile * kKeys + lane_];
    if (seen(tile, lane_ + 32)) next1_ = scores_[tile * kKeys + lane_ + 32];
  }

  const KeyTiles& tiles_;
  const float* const scores_;
  const int lane_;
  Scores softmax_[1];
  float next0_ = 0.0f, next1_ = 0.0f;
};

// Continues the chain of one dimension by the values of four keys.
__device__ float add_four(const float* weights, const float* v, int key, float out) {
  const float4 x = *reinterpret_cast<const float4*>(weights + key);
  out = __fmaf_rn(x.x, v[key * kSlice], out);
  out = __fmaf_rn(x.y, v[(key + 1) * kSlice], out);
  out = __fmaf_rn(x.z, v[(key + 2) * kSlice], out);
  return __fmaf_rn(x.w, v[(key + 3) * kSlice], out);
}

// Adds the values of keys [from, to) of a tile.
__device__ float add_values(const float* weights, const float* v, int from, int to, float out) {
  if (from == 0 && to == kKeys) {
#pragma unroll 8
    for (int key = 0; key < kKeys; key += 4)
      out = add_four(weights, v, key, out);
    return out;
  }
  int key = from;
  for (; key < to && key % 4 != 0; ++key)
    out = __fmaf_rn(weights[key], v[key * kSlice], out);
  for (; key + 4 <= to; key += 4)
    out = add_four(weights, v, key, out);
  for (; key < to; ++key)
    out = __fmaf_rn(weights[key], v[key * kSlice], out);
  return out;
}

// Copies 32 dimensions of the values, tile by tile; `me`: the index among the copying threads, each
// of which copies every eighth key's piece at its place.
class SliceCopy {
 public:
  __device__ SliceCopy(
      const Attention& a, const ItemView& item, const KeyTiles& tiles, int first_d, int me)
      : tiles_(tiles),
        table_(item.table),
        values_(static_cast<const float*>(a.v_pool.data) +
                item.kv_head * kKvBlock * a.head_dim + first_d + me % kPieces * 4),
        block_floats_(a.kv_heads * kKvBlock * a.head_dim),
        head_dim_(a.head_dim),
        there_(first_d + me % kPieces * 4 < a.head_dim),
        key_(me / kPieces),
        to_(me * 4) {}
  // Reads the table's entries of a tile, for which `start` comes next: when it does, they are there.
  __device__ void look_up(int tile) {
#pragma unroll
    for (int i = 0; i < kKeys / kStep; ++i)
      if (copies(tile, i)) block_[i] = table_[(tiles_.begin_of(tile) + key_ + i * kStep) / kKvBlock];
  }
  // Starts copying a tile, but not keys that no row sees, and commits the group. Nothing is copied
  // after the last tile.
  __device__ void start(int tile, float* slot) const {
#pragma unroll
    for (int i = 0; i < kKeys / kStep; ++i) {
      if (!copies(tile, i)) continue;
      const std::int64_t key = (tiles_.begin_of(tile) + key_ + i * kStep) % kKvBlock;
      copy_async(slot + to_ + i * kStep * kSlice,
                 values_ + std::int64_t{block_[i]} * block_floats_ + key * head_dim_);
    }
    copy_async_commit();
  }

 private:
  static constexpr int kStep = kCopyThreads / kPieces;  // between two keys of a thread

  __device__ bool copies(int tile, int i) const {
    const int key = key_ + i * kStep;
    return there_ && tile < tiles_.count() && tiles_.from(tile) <= key && key < tiles_.to(tile);
  }

  const KeyTiles& tiles_;
  const std::int32_t* const table_;
  const float* const values_;
  const std::int64_t block_floats_, head_dim_;
  const bool there_;
  const int key_, to_;
  std::int32_t block_[kKeys / kStep] = {};
};

constexpr std::size_t kValueBytes = kSlots * kTileFloats * sizeof(float) + sizeof(TileWeights);

// Warps [0, heads) add values, the next `heads` make weights, the last two copy.
__global__ void __launch_bounds__(1024)
    values_kernel(Attention a, const AttentionItem* items, Spread spread) {
  const ItemView item(a, items[blockIdx.x]);
  if (!item.one_row()) return;
  const KeyTiles tiles(a, item);
  if (!spread.holds(tiles)) return;
  auto* const v = reinterpret_cast<float*>(dynamic_shared());
  auto& shared = *reinterpret_cast<TileWeights*>(v + kSlots * kTileFloats);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int first_d = static_cast<int>(blockIdx.y) * kSlice, d = first_d + lane;
  const int head = warp % spread.heads;
  const bool copies = warp >= 2 * spread.heads;
  const bool makes = !copies && warp >= spread.heads && head < item.heads;
  const bool adds = warp < spread.heads && head < item.heads && d < a.head_dim;
  SliceCopy copy(a, item, tiles, first_d,
                 static_cast<int>(threadIdx.x) - 2 * spread.heads * 32);
  for (int tile = 0; copies && tile < kSlots - 1; ++tile) {
    copy.look_up(tile);
    copy.start(tile, v + tile * kTileFloats);
  }
  if (copies) copy.look_up(kSlots - 1);
  WeightWarp maker(tiles, spread.of(blockIdx.x, head));
  if (makes) maker.make(0, shared, head);
  float out = 0.0f;
  const int count = tiles.count();
  for (int tile = 0; tile < count; ++tile) {
    if (copies) copy_async_wait<kSlots - 2>();
    __syncthreads();  // the tile's values and weights are there, and no thread needs the last
    const int ahead = tile + kSlots - 1;
    if (copies) {
      copy.start(ahead, v + ahead % kSlots * kTileFloats);
      copy.look_up(ahead + 1);
    }
    if (makes && tile + 1 < count) maker.make(tile + 1, shared, head);
    if (adds)
      out = add_values(shared.weights[tile % 2][head], v + tile % kSlots * kTileFloats + lane,
                       tiles.from(tile), tiles.to(tile), out * shared.alphas[tile % 2][head]);
  }
  if (makes && lane == 0) {
    shared.inverses[head] = 1.0f / maker.sum();
    if (a.lse != nullptr && blockIdx.y == 0)
      a.lse[item.first_row * a.heads + item.first_head + head] = maker.log_sum();
  }
  __syncthreads();
  if (adds)
    a.out[item.first_row * a.ldo + (item.first_head + head) * a.head_dim + d] =
        out * shared.inverses[head];
}

}  // namespace

Spread spread_of(const Attention& a, std::int64_t count) {
  const Current& device = current_device();
  const std::int64_t heads = a.heads / a.kv_heads;
  if (count * 2 > device.multiprocessors || heads > kHeadsMost || a.head_dim % 4 != 0) return {};
  if (score_bytes(a) > device.shared_bytes || kValueBytes > device.shared_bytes) return {};
  const std::int64_t tile_bytes = count * heads * kKeys * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t tiles = static_cast<std::int64_t>(device.workspace.bytes) / tile_bytes;
  return {static_cast<float*>(device.workspace.data), static_cast<int>(heads),
          static_cast<int>(tiles < (1 << 20) ? tiles : 1 << 20)};
}

void attention_spread(const Attention& a,
                      const AttentionItem* items,
                      std::int64_t count,
                      const Spread& spread) {
  if (spread.tiles == 0) return;
  constexpr std::int64_t kBlocksMost = 64;  // of an item
  const std::int64_t blocks = std::int64_t{current_device().multiprocessors} * 4 / count;
  launch("attention_scores", scores_kernel,
         dim3(static_cast<unsigned>(count),
              static_cast<unsigned>(blocks < kBlocksMost ? blocks : kBlocksMost)),
         kScoreThreads, score_bytes(a), a, items, spread);
  launch("attention_values", values_kernel,
         dim3(static_cast<unsigned>(count), blocks_for(a.head_dim, kSlice)),
         static_cast<unsigned>(2 * spread.heads * 32 + kCopyThreads), kValueBytes, a, items, spread);
}

}  // namespace troupe::kernels::cuda
