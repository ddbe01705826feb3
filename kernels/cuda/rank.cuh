// Finds the last token that a cut keeps, in the ranking by score, ties by lower id, with one thread
// block and without sorting: counts the row's tokens in bins by distance from the maximum, then
// those of the bin in which the cut falls by digits of their ranks, until few enough are left to
// compare each with each. What is summed are whole numbers, so the order in which threads add them
// changes nothing. The first pass reads every block that can hold the cut, the others only blocks
// that reach down to its bin; most rows need two passes.
#pragma once

#include "kernels/cuda/token_row.cuh"
#include "kernels/draw_shapes.hpp"

namespace troupe::kernels::cuda {

using Whole = unsigned long long;  // as atomicAdd has it

inline constexpr int kBins = 1024;
inline constexpr int kBinBits = 10;
inline constexpr float kBinsPerUnit = 32.0f;  // of score; the last bin takes the rest
inline constexpr int kRankWarps = kMergeThreads / 32;

// The place of a token in the ranking as a number; larger ranks first, and no two are equal. Never
// 0. A score of -0 equals one of 0.
__device__ inline Whole rank_of(float score, int id) {
  const unsigned bits = __float_as_uint(score + 0.0f);
  const unsigned ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<Whole>(ascending) << 32 | (0xffffffffu - static_cast<unsigned>(id));
}
__device__ inline float score_of(Whole rank) {
  const unsigned ascending = static_cast<unsigned>(rank >> 32);
  return __uint_as_float((ascending >> 31) != 0 ? ascending & 0x7fffffffu : ~ascending);
}
__device__ inline int id_of(Whole rank) {
  return static_cast<int>(0xffffffffu - static_cast<unsigned>(rank));
}

// Calls each(score, id) for the tokens of a block, with a warp.
template <class Each>
__device__ inline void for_tokens_of(const TokenRow& row, int block, const Each& each) {
  constexpr int kAhead = 4;  // loads in flight
  const int lane = static_cast<int>(threadIdx.x) % 32, count = row.size(block);
  for (int first = lane; first < count; first += 32 * kAhead) {
    float score[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j)
      score[j] = first + 32 * j < count ? row.score(block, first + 32 * j) : 0.0f;
#pragma unroll
    for (int j = 0; j < kAhead; ++j)
      if (first + 32 * j < count) each(score[j], block * TokenRow::kBlock + first + 32 * j);
  }
}
// Visits all blocks whose maximum is at least `floor`, with all threads.
template <class Each>
__device__ inline void for_tokens(const TokenRow& row, float floor, const Each& each) {
  for (int b = static_cast<int>(threadIdx.x) / 32; b < row.blocks(); b += kRankWarps)
    if (row.block_max[b] >= floor) for_tokens_of(row, b, each);
}

// What a search adds up over the ranking.
struct Measure {
  float max;            // of the row
  bool mass;            // kernels::mass_of each token; otherwise 1
  bool minus_infinity;  // whether tokens of this score take part
  __device__ bool takes(float score) const {
    return minus_infinity ? score == score : score > -infinity();
  }
  __device__ Whole of(float score) const { return mass ? mass_of(exp_f32(score - max)) : 1; }
  __device__ int bin(float score) const {
    const float below = (max - score) * kBinsPerUnit;
    return below < static_cast<float>(kBins - 1) ? static_cast<int>(below) : kBins - 1;
  }
};

struct RankBins {
  unsigned count[kBins];
  Whole measure[kBins];
  Whole part[kMergeThreads];  // of each thread's bins
  // For the bin in which the limit is reached (kBins: in none): the bin, the measure before it (if
  // none, of all), and how many tokens it has.
  int bin;
  Whole before;
  Whole last;
  // Tokens that are compared with each other.
  unsigned listed;
  Whole rank[kMergeThreads];
  Whole weight[kMergeThreads];

  __device__ void clear() {
    for (int b = static_cast<int>(threadIdx.x); b < kBins; b += kMergeThreads) {
      count[b] = 0;
      measure[b] = 0;
    }
    __syncthreads();
  }
  __device__ void add(int at, Whole value) {
    atomicAdd(&count[at], 1u);
    atomicAdd(&measure[at], value);
  }
  // Sets `bin` and `before`. `start`: the measure before the first bin.
  __device__ void find(Whole start, double limit) {
    constexpr int kOwn = kBins / kMergeThreads;
    const int thread = static_cast<int>(threadIdx.x);
    __syncthreads();
    Whole own = 0;
    for (int b = 0; b < kOwn; ++b)
      own += measure[thread * kOwn + b];
    part[thread] = own;
    if (thread == 0) bin = kBins;
    __syncthreads();
    Whole at = start;
    for (int t = 0; t < thread; ++t)
      at += part[t];
    if (thread == kMergeThreads - 1 && !reaches(at + own, limit)) before = at + own;
    if (!reaches(at, limit) && reaches(at + own, limit)) {
      int b = thread * kOwn;
      for (; !reaches(at + measure[b], limit); ++b)
        at += measure[b];
      bin = b;
      before = at;
    }
    __syncthreads();
  }
};

// The rank of the first token at which the running measure reaches `limit`, which is above 0; 0 if
// it never does. If some token reaches it that scores at least `floor`, blocks below are skipped;
// otherwise `floor` is minus infinity. All threads call it and get the result.
__device__ inline Whole find_last(const TokenRow& row,
                                  const Measure& measure,
                                  float floor,
                                  double limit) {
  __shared__ RankBins bins;
  const int thread = static_cast<int>(threadIdx.x);
  bins.clear();
  for_tokens(row, floor, [&](float score, int) {
    const int bin = measure.bin(score);
    // The last bin may have very many; it is looked at only if the limit lies there.
    if (bin < kBins - 1 && measure.takes(score)) bins.add(bin, measure.of(score));
  });
  bins.find(0, limit);
  const bool far = bins.bin == kBins;
  if (far && measure.mass) return 0;  // tokens as far away as the last bin have no mass
  const int cut = far ? kBins - 1 : bins.bin;
  // One bin more, for rounding.
  if (!far) floor = larger(measure.max - static_cast<float>(cut + 2) / kBinsPerUnit, floor);
  Whole before = bins.before, known = 0, digits = 0;  // the ranks' digits that are known
  bool many = far || bins.count[cut] > kMergeThreads;
  const auto near = [&](float score, Whole rank) {
    return measure.bin(score) == cut && measure.takes(score) && (rank & digits) == known;
  };
  for (int shift = 64 - kBinBits; many; shift = shift > kBinBits ? shift - kBinBits : 0) {
    __syncthreads();
    bins.clear();
    for_tokens(row, floor, [&](float score, int id) {
      const Whole rank = rank_of(score, id);
      if (near(score, rank))
        bins.add(kBins - 1 - static_cast<int>(rank >> shift & (kBins - 1)), measure.of(score));
    });
    bins.find(before, limit);
    if (bins.bin == kBins) return 0;
    before = bins.before;
    many = bins.count[bins.bin] > kMergeThreads;
    known |= static_cast<Whole>(kBins - 1 - bins.bin) << shift;
    digits |= static_cast<Whole>(kBins - 1) << shift;
  }
  __syncthreads();
  if (thread == 0) bins.listed = 0;
  __syncthreads();
  for_tokens(row, floor, [&](float score, int id) {
    const Whole rank = rank_of(score, id);
    if (!near(score, rank)) return;
    const unsigned at = atomicAdd(&bins.listed, 1u);
    bins.rank[at] = rank;
    bins.weight[at] = measure.of(score);
  });
  __syncthreads();
  if (thread < static_cast<int>(bins.listed)) {
    const Whole mine = bins.rank[thread];
    for (unsigned i = 0; i < bins.listed; ++i)
      if (bins.rank[i] > mine) before += bins.weight[i];
    if (!reaches(before, limit) && reaches(before + bins.weight[thread], limit)) bins.last = mine;
  }
  __syncthreads();
  const Whole last = bins.last;
  __syncthreads();  // another search may follow
  return last;
}

// A score that at least `count` tokens have: the count-th largest maximum of a block, or minus
// infinity if there are fewer blocks, or very many. All threads call it and get the result.
__device__ inline float floor_of_first(const TokenRow& row, int count) {
  constexpr int kBlocks_max = 4096;  // each maximum is compared with all others
  __shared__ float found;
  const int blocks = row.blocks();
  if (count > blocks || blocks > kBlocks_max) return -infinity();
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += kMergeThreads) {
    const float mine = row.block_max[b];
    int before = 0;
    for (int i = 0; i < blocks; ++i) {
      const float other = row.block_max[i];
      if (other > mine || (other == mine && i < b)) ++before;
    }
    if (before == count - 1) found = mine;
  }
  __syncthreads();
  const float floor = found;
  __syncthreads();
  return floor;
}

}  // namespace troupe::kernels::cuda
