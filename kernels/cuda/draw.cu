// Draws tokens, one thread block per draw. Joins the partial sums of the row in shared memory. Then
// single threads walk over the vocabulary blocks, and over the 512 columns of the chosen one, in
// double and in order, as runtime/engine/sampler.cpp does. Bound by the latency of these chains,
// however many draws run at once. So what they add is in shared memory in double, and they do not
// branch within kStride steps: a step without mass subtracts zero.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/token_row.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kBlock = TokenRow::kBlock;

// The minimum over the thread block, returned to all threads.
__device__ int smallest(int mine) {
  __shared__ int warps[kMergeThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    const int other = __shfl_xor_sync(kAllLanes, mine, step);
    mine = other < mine ? other : mine;
  }
  __syncthreads();  // the last call's numbers are no longer needed
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  for (int w = 0; w < kMergeThreads / 32; ++w)
    mine = warps[w] < mine ? warps[w] : mine;
  return mine;
}

// The most likely token; on a tie, the lowest id. For a row of NaNs: the first of some block.
__device__ int largest(const TokenRow& row, const MergedBlocks& merged) {
  const int thread = static_cast<int>(threadIdx.x);
  int block = merged.blocks - 1;
  for (int b = merged.blocks - 1 - thread; b >= 0; b -= kMergeThreads)
    if (row.block_max[b] == merged.max) block = b;
  block = smallest(block);
  const float max = row.block_max[block];
  int at = kBlock;
  for (int i = thread; i < row.size(block); i += kMergeThreads)
    if (row.score(block, i) == max && i < at) at = i;
  at = smallest(at);
  return block * kBlock + (at < kBlock ? at : 0);
}

struct Place {
  int block;    // -1: no block has any mass
  double rest;  // the part of u that is left for this block
};

constexpr int kStride = 8;

__device__ double sum_of(const double* numbers, int count) {
  double sum = 0.0;
#pragma unroll 8
  for (int i = 0; i < count; ++i)
    sum = sum + numbers[i];
  return sum;
}

// Runs on one thread. `mass`: of the blocks.
__device__ Place find_block(const double* mass, int blocks, double u) {
  Place place{-1, u * sum_of(mass, blocks)};
  double rest = place.rest, before = 0.0;  // the mass of the block that had any before
  bool found = false;
  for (int first = 0; first < blocks && !found; first += kStride) {
#pragma unroll
    for (int i = 0; i < kStride; ++i) {
      const double own = first + i < blocks ? mass[first + i] : 0.0;
      const bool there = own > 0.0;
      rest = rest - (there ? before : 0.0);
      before = there ? own : before;
      if (there && !found) place = {first + i, rest};
      found = found || (there && rest < own);
    }
  }
  return place;
}

// Runs on one thread: finds the column at which the running weight passes `rest`, rescaled because
// the block's own sum was added in another order.
__device__ int find_column(const double* weights, int count, double rest, double block_mass) {
  rest = rest * (sum_of(weights, count) / block_mass);
  int last = 0;
  bool found = false;
  for (int first = 0; first < count && !found; first += kStride) {
#pragma unroll
    for (int i = 0; i < kStride; ++i) {
      const double own = first + i < count ? weights[first + i] : 0.0;
      const bool there = own > 0.0;
      rest = rest - (there ? own : 0.0);
      if (there && !found) last = first + i;
      found = found || (there && rest < 0.0);
    }
  }
  return last;
}

__global__ void __launch_bounds__(kMergeThreads) draw_kernel(Draws d) {
  __shared__ Place place;
  __shared__ double weights[kBlock];
  __shared__ float lse;
  __shared__ int token;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t draw = blockIdx.x;
  const std::int64_t at = d.row == nullptr ? draw : d.row[draw];
  const std::int64_t all = vocab_blocks(d.rows.vocab);
  const TokenRow row = token_row(d.rows, at);
  auto* const masses = reinterpret_cast<double*>(dynamic_shared());
  const MergedBlocks merged = merge_blocks(row.block_max, d.rows.block_sum + at * all, d.rows.vocab,
                                           reinterpret_cast<float*>(masses + all));
  const double u = d.uniform[draw];
  if (thread == 32) lse = merged_lse(merged);
  if (u < 0.0) {
    const int best = largest(row, merged);
    if (thread == 0) token = best;
  } else {
    for (int b = thread; b < merged.blocks; b += kMergeThreads)
      masses[b] = mass_of_block(merged, b);
    __syncthreads();
    if (thread == 0) place = find_block(masses, merged.blocks, u);
    __syncthreads();
    const int block = place.block < 0 ? 0 : place.block;
    const int count = row.size(block);
    for (int i = thread; i < count; i += kMergeThreads)
      weights[i] = static_cast<double>(exp_f32(row.score(block, i) - row.block_max[block]));
    __syncthreads();
    if (thread == 0)
      token = block * kBlock + find_column(weights, count, place.rest, masses[block]);
  }
  __syncthreads();
  if (thread != 0) return;
  d.token[draw] = token;
  if (d.logprob != nullptr) d.logprob[draw] = row.score(0, token) - lse;
}

}  // namespace

void draw(const Draws& d, std::int64_t count) {
  const auto masses = static_cast<std::size_t>(vocab_blocks(d.rows.vocab)) * sizeof(double);
  launch("draw", draw_kernel, blocks_for(count, 1), kMergeThreads,
         masses + merge_bytes(d.rows.vocab), d);
}

}  // namespace troupe::kernels::cuda
