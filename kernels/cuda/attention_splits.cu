// Attention with keys and values in bfloat16, on tensor cores: all forms of docs/adr/0019. Keys
// come in tiles of 64, and every 1,024 of them are a split of their own. A tile of 16 queries (a
// row with a head each) is multiplied with a tile of keys by mma.m16n8k16: scores over the
// dimensions, then weights, rounded to bfloat16, over the keys. A query's sum of weights is one
// more such product, with ones. Which warp computes what changes no bit: each output is one chain.
//
// Prompts: each warp has 16 queries of its own (two warps, for large heads). Rows alone (decoding):
// the four warps of a block share the queries of a row, a quarter of the keys each for the scores
// and a quarter of the dimensions for the values; with few rows, splits are done by different
// blocks, which leave their results in the workspace for a second kernel. Otherwise the sum of
// earlier splits waits in `out`.
#include "kernels/cuda/attention_products.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {
namespace {

using namespace splits;

constexpr int kWarps = 4;
constexpr int kSplit = static_cast<int>(kSplitKeys);
constexpr int kItemRows = 32;            // per item, as plans cut them; more rows only take longer

// Partial results of splits in the workspace, for rows alone: of each item and split `heads`
// outputs, then maxima, then sums.
struct Partials {
  float* data = nullptr;
  int heads = 0, room = 0;  // of an item; splits for which there is room
  std::int64_t dim = 0;

  __device__ float* of(unsigned item, int split) const {
    return data + (std::int64_t{item} * room + split) * heads * (dim + 2);
  }
  // Whether several blocks do an item's splits.
  __device__ bool used(const SplitRange& splits) const {
    return splits.count() > 1 && splits.count() <= room;
  }
};

// Ends a split of the lane's queries: joins it to the earlier ones, whose sum is in `out`, and
// finishes the queries that see no later key. `writes`: whether the lane writes log-sum-exps.
template <int kDim, int kShare>
__device__ void end_split(const Attention& a,
                          const ItemView& item,
                          const Head& head,
                          int split,
                          bool writes,
                          Tile<kDim, kShare>& tile) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    LaneQuery& mine = tile.query[half];
    if (!mine.sees(split * kSplit, kSplit)) continue;
    mine.now.sum = tile.sum[half * 2];
    const SplitRange range(mine.first, mine.end);
    const bool begins = split == range.first, ends = split == range.last;
    MergeFactors factors{0.0f, 1.0f};
    if (begins)
      mine.all = mine.now;
    else
      factors = merge_split(mine.all, mine.now);
    const float inverse = 1.0f / mine.all.sum;
    const std::int64_t row = item.first_row + mine.query / item.heads;
    const std::int64_t which = item.first_head + mine.query % item.heads;
    float* const to = a.out + row * a.ldo + which * head.dim;
    for_outputs(head, tile, half, [&](int d, float sum) {
      const float all = begins ? sum : merge_output(to[d], sum, factors);
      to[d] = ends ? normalised(all, inverse) : all;
    });
    if (ends && writes && a.lse != nullptr)
      a.lse[row * a.heads + which] = mine.all.max + log_f32(mine.all.sum);
  }
}

// Leaves a split of the lane's queries in the workspace.
template <int kDim, int kShare>
__device__ void leave_split(const Head& head,
                            const Partials& partials,
                            int heads,
                            bool writes,
                            float* to,
                            Tile<kDim, kShare>& tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = lane / 4 + half * 8;
    if (query >= heads) continue;
    for_outputs(head, tile, half, [&](int d, float sum) { to[query * partials.dim + d] = sum; });
    if (!writes) continue;
    float* const softmax = to + partials.heads * partials.dim + query;
    softmax[0] = tile.query[half].now.max;
    softmax[partials.heads] = tile.sum[half * 2];
  }
}

// Queries [first, first + count) of an item over the splits from `split` on, every `step`-th.
// `kHalves`: 1 if they are at most half a tile.
template <int kDim, int kShare, int kStages, int kHalves>
__device__ void attend(const Attention& a,
                       const ItemView& item,
                       const Partials& partials,
                       int first,
                       int count,
                       int split,
                       int step) {
  const Head head(a.head_dim);
  const int me = static_cast<int>(threadIdx.x), warp = me / 32, lane = me % 32;
  constexpr int kTiles = kWarps / kShare;
  const int own = warp / kShare * kQueries;  // the warp's first query, counted from `first`
  const int part = warp % kShare;
  auto* const q = reinterpret_cast<uint4*>(dynamic_shared());
  uint4* const stages = q + kTiles * kQueries * head.stride;
  [[maybe_unused]] const SharedWeights<kShare> weights{
      stages + kStages * head.tile_pieces() + own / kQueries * SharedWeights<kShare>::kPieces};
  const auto end_of = [&](int query) { return static_cast<int>(item.keys) + query / item.heads; };
  const auto first_of = [&](int query) {
    return static_cast<int>(first_key(end_of(query), a.window));
  };
  const auto seen_by = [&](int begin, int end) { return KeyRange{first_of(begin), end_of(end - 1)}; };
  const KeyRange seen = seen_by(first, first + count);
  const KeyRange seen_by_all{first_of(first + count - 1), end_of(first)};
  const auto next_of = [&](int tile) {
    const int next = tile + kKeys;
    return next % kSplit == 0 ? next + (step - 1) * kSplit : next;
  };
  const auto fetch = [&](int tile, int slot) {
    if (tile < seen.end)
      fetch_tile<kDim, kWarps * 32>(a, item, head, seen, tile, stages + slot * head.tile_pieces());
  };
  int tile = split * kSplit;
  if (tile < seen.first) tile = seen.first / kKeys * kKeys;
  __syncthreads();  // what came before no longer needs the queries
  load_queries(a, item, head, first, count, kTiles * kQueries, q);
  for (int slot = 0; slot < kStages; ++slot)
    zero_padding(head, stages + slot * head.tile_pieces());
  if constexpr (kHalves == 1) weights.zero_second_half();
  fetch(tile, 0);

  Tile<kDim, kShare> mine;
  mine.pair = part * Tile<kDim, kShare>::kPairs;
  const int left = count - own < kQueries ? count - own : kQueries;  // queries of the tile; or <= 0
  for (int half = 0; half < 2; ++half)
    if (lane / 4 + half * 8 < left)
      mine.query[half] = LaneQuery(a, item, first + own + lane / 4 + half * 8);
  KeyRange own_seen{0, 0};  // by any of the tile's queries
  if (left > 0) own_seen = seen_by(first + own, first + own + left);
  const bool writes = lane % 4 == 0 && part == 0;
  mine.start_split();
  for (int slot = 0; tile < seen.end;) {
    const int next = next_of(tile);
    copy_async_wait<0>();
    __syncthreads();  // the tile is complete, and no thread reads the one before it
    if constexpr (kStages > 1) fetch(next, 1 - slot);
    const uint4* const keys = stages + slot * head.tile_pieces();
    const bool busy = tile < own_seen.end && tile + kKeys > own_seen.first;
    const uint4* const values = keys + head.key_pieces();
    if constexpr (kShare == 1) {
      float score[kKeyPieces][4];
      if (busy) {
        dots<kKeySteps>(head, q + own * head.stride, keys, 0, score);
        weigh(a, tile, mine.query, score);
        add_values<kHalves>(head, values, OwnWeights{score}, mine);
      }
    } else {
      constexpr int kColumns = kKeys / kShare;
      float score[kColumns / 8][4];
      dots<kColumns / 16>(head, q + own * head.stride, keys, part * kColumns, score);
      scale_scores(a, score);
      if (seen_by_all.first <= tile && tile + kKeys <= seen_by_all.end)
        weigh_part<true, kHalves>(tile, part, score, weights, mine.query);
      else
        weigh_part<false, kHalves>(tile, part, score, weights, mine.query);
      if (busy) add_values<kHalves>(head, values, weights, mine);
    }
    if (next % kSplit == 0 || next >= seen.end) {
      const int done = tile / kSplit;
      if (step > 1)
        leave_split(head, partials, count, writes,
                    partials.of(blockIdx.x, done - SplitRange(seen.first, seen.end).first), mine);
      else
        end_split(a, item, head, done, writes, mine);
      mine.start_split();
    }
    if constexpr (kStages == 1) {
      __syncthreads();
      fetch(next, 0);
    } else {
      slot = 1 - slot;
    }
    tile = next;
  }
}

// Heads of more than 128 dimensions need two warps for the outputs of a tile.
template <int kDim>
constexpr int kShareOfRows = kDim > 128 ? 2 : 1;

template <int kDim, int kStages>
__global__ void __launch_bounds__(kWarps * 32, 2)
    rows_kernel(Attention a, const AttentionItem* items) {
  const ItemView item(a, items[blockIdx.x]);
  if (item.one_row() || item.rows <= 0) return;
  constexpr int kShare = kShareOfRows<kDim>, kRoom = kWarps / kShare * kQueries;
  const int all = item.rows * item.heads;
  for (int first = static_cast<int>(blockIdx.y) * kRoom; first < all;
       first += static_cast<int>(gridDim.y) * kRoom) {
    const std::int64_t seen = first_key(item.keys + first / item.heads, a.window);
    attend<kDim, kShare, kStages, 2>(a, item, {}, first, all - first < kRoom ? all - first : kRoom,
                                  static_cast<int>(seen / kSplitKeys), 1);
  }
}

template <int kDim, int kStages, int kHalves>
__global__ void __launch_bounds__(kWarps * 32)
    one_row_kernel(Attention a, const AttentionItem* items, Partials partials) {
  const ItemView item(a, items[blockIdx.x]);
  if (!item.one_row()) return;
  const SplitRange splits(first_key(item.keys, a.window), item.keys);
  const bool shared = partials.used(splits);
  const int mine = static_cast<int>(blockIdx.y);
  if (mine >= (shared ? splits.count() : 1)) return;
  attend<kDim, kWarps, kStages, kHalves>(a, item, partials, 0, item.heads, splits.first + mine,
                                         shared ? static_cast<int>(gridDim.y) : 1);
}

// Joins the splits of one head of each row whose splits different blocks did.
__global__ void __launch_bounds__(128)
    merge_kernel(Attention a, const AttentionItem* items, Partials partials) {
  const ItemView item(a, items[blockIdx.x]);
  if (!item.one_row()) return;
  const SplitRange splits(first_key(item.keys, a.window), item.keys);
  const int head = static_cast<int>(blockIdx.y);
  if (!partials.used(splits) || head >= item.heads) return;
  const std::int64_t softmaxes = partials.heads * partials.dim + head;
  for (std::int64_t d = threadIdx.x; d < partials.dim; d += 128) {
    Softmax all;
    float out = 0.0f;
    for (int split = 0; split < splits.count(); ++split) {
      const float* const from = partials.of(blockIdx.x, split);
      const Softmax next(from[softmaxes], from[softmaxes + partials.heads]);
      const float value = from[head * partials.dim + d];
      if (split == 0)
        all = next, out = value;
      else
        out = merge_output(out, value, merge_split(all, next));
    }
    a.out[item.first_row * a.ldo + (item.first_head + head) * partials.dim + d] =
        normalised(out, 1.0f / all.sum);
    if (d == 0 && a.lse != nullptr)
      a.lse[item.first_row * a.heads + item.first_head + head] = all.max + log_f32(all.sum);
  }
}

// Shared memory of blocks in which `share` warps share a tile.
std::size_t shared_bytes(const Head& head, int share, int stages) {
  const int tiles = kWarps / share, queries = tiles * kQueries;
  const int weights = share > 1 ? tiles * (kQueries * kKeyStride + share * kQueries / 4) : 0;
  return static_cast<std::size_t>(queries * head.stride + stages * head.tile_pieces() + weights) *
         sizeof(uint4);
}
// Two stages of keys if there is shared memory for them.
int stages_of(const Head& head, int share) {
  return shared_bytes(head, share, 2) <= current_device().shared_bytes ? 2 : 1;
}

template <int kDim>
void start_rows(const Attention& a, const AttentionItem* items, std::int64_t count) {
  constexpr int kShare = kShareOfRows<kDim>;
  const Head head(a.head_dim);
  const int stages = stages_of(head, kShare);
  const std::int64_t queries = kItemRows * (a.heads / a.kv_heads);
  const dim3 grid(static_cast<unsigned>(count), blocks_for(queries, kWarps / kShare * kQueries));
  launch("attention", stages == 2 ? rows_kernel<kDim, 2> : rows_kernel<kDim, 1>, grid, kWarps * 32,
         shared_bytes(head, kShare, stages), a, items);
}

// Few rows share out their splits, so that every multiprocessor has something to do.
template <int kDim>
void start_one_row(const Attention& a, const AttentionItem* items, std::int64_t count) {
  constexpr std::int64_t kSplitsMost = 16;  // blocks of one item
  const Head head(a.head_dim);
  const Current& device = current_device();
  const std::int64_t group = a.heads / a.kv_heads;
  const std::int64_t heads = group < kOneRowHeads ? group : kOneRowHeads;
  const auto bytes = static_cast<std::int64_t>(sizeof(float)) * heads * (a.head_dim + 2) * count;
  const std::int64_t room = static_cast<std::int64_t>(device.workspace.bytes) / bytes;
  std::int64_t blocks = std::int64_t{device.multiprocessors} * 4 / count;
  blocks = room < 2 || blocks < 2 ? 1 : blocks < kSplitsMost ? blocks : kSplitsMost;
  Partials partials{static_cast<float*>(device.workspace.data), static_cast<int>(heads), 0,
                    a.head_dim};
  if (blocks > 1) partials.room = static_cast<int>(room < (1 << 20) ? room : 1 << 20);
  const int stages = stages_of(head, kWarps);
  const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(blocks));
  const auto start = [&](auto kernel) {
    launch("attention", kernel, grid, kWarps * 32, shared_bytes(head, kWarps, stages), a, items,
           partials);
  };
  if (heads <= kQueries / 2)
    start(stages == 2 ? one_row_kernel<kDim, 2, 1> : one_row_kernel<kDim, 1, 1>);
  else
    start(stages == 2 ? one_row_kernel<kDim, 2, 2> : one_row_kernel<kDim, 1, 2>);
  if (blocks > 1)
    launch("attention_merge", merge_kernel,
           dim3(static_cast<unsigned>(count), static_cast<unsigned>(heads)), 128, 0, a, items,
           partials);
}

template <int kDim>
void start(const Attention& a, const AttentionItem* items, std::int64_t count) {
  const bool wide = a.heads / a.kv_heads > kOneRowHeads;
  if (a.one_row_items) start_one_row<kDim>(a, items, count);
  if (a.longer_items || wide) start_rows<kDim>(a, items, count);
}

}  // namespace

void attention_in_splits(const Attention& a, const AttentionItem* items, std::int64_t count) {
  if (a.head_dim <= 64) return start<64>(a, items, count);
  if (a.head_dim <= 128) return start<128>(a, items, count);
  start<256>(a, items, count);
}

}  // namespace troupe::kernels::cuda
