// Draws tokens from what top-k, top-p and min-p leave of a row, one thread block per draw: finds
// the last kept token (rank.cuh), sums the kept masses by vocabulary block, and walks over blocks
// and over the columns of one as draw.cu does. A row of 152k tokens is read once from memory; what
// the cut leaves of its blocks is read once or twice more, from L2.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/rank.cuh"

namespace troupe::kernels::cuda {
namespace {

struct Kept {
  float max;
  float min_p;
  Whole last;  // 0: no cut by rank
  // The mass of a token; 0 if it is not kept.
  __device__ Whole mass(float score, int id) const {
    if (!(score > -infinity()) || rank_of(score, id) < last) return 0;
    const float weight = exp_f32(score - max);
    return weight < min_p ? 0 : mass_of(weight);
  }
  // No kept token scores less.
  __device__ float floor() const {
    float low = last != 0 ? score_of(last) : -infinity();
    if (min_p > 0.0f) low = larger(max + log_f32(min_p) - 0.01f, low);
    return low;
  }
};

// The kept mass of each block, in shared memory, and of all. All threads call it.
__device__ Whole sum_masses(const TokenRow& row, const Kept& kept, Whole* of_block) {
  __shared__ Whole total;
  const float floor = kept.floor();
  for (int b = static_cast<int>(threadIdx.x) / 32; b < row.blocks(); b += kRankWarps) {
    Whole sum = 0;
    if (row.block_max[b] >= floor)
      for_tokens_of(row, b, [&](float score, int id) { sum += kept.mass(score, id); });
    for (int step = 16; step > 0; step /= 2)
      sum += __shfl_xor_sync(kAllLanes, sum, step);
    if (threadIdx.x % 32 == 0) of_block[b] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    Whole sum = 0;
#pragma unroll 4
    for (int b = 0; b < row.blocks(); ++b)
      sum += of_block[b];
    total = sum;
  }
  __syncthreads();
  return total;
}

__device__ Kept find_kept(const TokenRow& row,
                          const MergedBlocks& merged,
                          const Truncation& cut,
                          Whole* of_block) {
  __shared__ double mass;
  Kept kept{merged.max, 0.0f, 0};
  float floor = -infinity();
  if (cut.top_k > 0) {
    floor = floor_of_first(row, cut.top_k);
    kept.last = find_last(row, {merged.max, false, false}, floor, static_cast<double>(cut.top_k));
  }
  if (cut.top_p < 1.0f) {
    if (cut.top_k > 0) {
      const Whole all = sum_masses(row, kept, of_block);
      if (threadIdx.x == 0) mass = static_cast<double>(all);
    } else if (threadIdx.x == 0) {
      mass = mass_of_row(merged) * kMassUnits;
    }
    __syncthreads();
    const Whole last =
        find_last(row, {merged.max, true, false}, floor, static_cast<double>(cut.top_p) * mass);
    if (last != 0) kept.last = last;
  }
  kept.min_p = cut.min_p;
  return kept;
}

struct Place {
  int block;
  Whole rest;  // what is left of the wanted mass for this block
};

// Runs on one thread.
__device__ Place find_block(const Whole* mass, int blocks, Whole wanted) {
  Place place{0, wanted};
  for (int b = 0; b < blocks; ++b) {
    if (mass[b] == 0) continue;
    place = {b, wanted};
    if (wanted < mass[b]) break;
    wanted -= mass[b];
  }
  return place;
}

__global__ void __launch_bounds__(kMergeThreads) draw_kept_kernel(KeptDraws d) {
  __shared__ Whole masses[TokenRow::kBlock];
  __shared__ Place place;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t draw = blockIdx.x, at = d.row[draw];
  const TokenRow row = token_row(d.rows, at);
  const int blocks = row.blocks();
  float* const merging = reinterpret_cast<float*>(dynamic_shared());
  Whole* const of_block = reinterpret_cast<Whole*>(merging + 2 * blocks);
  const MergedBlocks merged =
      merge_blocks(row.block_max, d.rows.block_sum + at * blocks, d.rows.vocab, merging);
  const Kept kept = find_kept(row, merged, d.truncation[draw], of_block);
  const Whole all = sum_masses(row, kept, of_block);
  if (thread == 0) {
    const auto wanted = static_cast<Whole>(d.uniform[draw] * static_cast<double>(all));
    place = find_block(of_block, blocks, wanted);
  }
  __syncthreads();
  const int block = place.block, count = row.size(block);
  for (int i = thread; i < count; i += kMergeThreads)
    masses[i] = kept.mass(row.score(block, i), block * TokenRow::kBlock + i);
  __syncthreads();
  if (thread != 0) return;
  int last = 0;
  Whole sum = 0;
  for (int i = 0; i < count; ++i) {
    if (masses[i] == 0) continue;
    last = i;
    sum += masses[i];
    if (sum > place.rest) break;
  }
  d.token[draw] = block * TokenRow::kBlock + last;
  if (d.mass != nullptr) d.mass[draw] = all;
}

}  // namespace

void draw_kept(const KeptDraws& d, std::int64_t count) {
  launch("draw_kept", draw_kept_kernel, blocks_for(count, 1), kMergeThreads,
         merge_bytes(d.rows.vocab) +
             static_cast<std::size_t>(vocab_blocks(d.rows.vocab)) * sizeof(Whole),
         d);
}

}  // namespace troupe::kernels::cuda
