// The most likely tokens of rows of logits, one thread block per list: finds the last of them
// (rank.cuh), gathers the others, and counts for each how many come before it.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/rank.cuh"

namespace troupe::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kMergeThreads) most_likely_kernel(MostLikely m) {
  __shared__ Whole rank[kMostLikely_max];
  __shared__ unsigned found;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t list = blockIdx.x, at = m.row[list];
  const int begin = m.begin[list], count = m.begin[list + 1] - begin;
  if (count == 0) return;
  const TokenRow row = token_row(m.rows, at);
  const MergedBlocks merged =
      merge_blocks(row.block_max, m.rows.block_sum + at * row.blocks(), m.rows.vocab,
                   reinterpret_cast<float*>(dynamic_shared()));
  const float floor = floor_of_first(row, count);
  const Whole last =
      find_last(row, {merged.max, false, true}, floor, static_cast<double>(count));
  if (thread == 0) found = 0;
  __syncthreads();
  if (last == 0) {  // not that many numbers in this row
    if (thread < count) {
      m.token[begin + thread] = 0;
      m.logprob[begin + thread] = not_a_number();
    }
    return;
  }
  for_tokens(row, score_of(last), [&](float score, int id) {
    if (score == score && rank_of(score, id) >= last)
      rank[atomicAdd(&found, 1u)] = rank_of(score, id);
  });
  __syncthreads();
  if (thread >= count) return;
  const Whole mine = rank[thread];
  int place = begin;
  for (int i = 0; i < count; ++i)
    if (rank[i] > mine) ++place;
  m.token[place] = id_of(mine);
  m.logprob[place] = row.logits[id_of(mine)] * row.inv_temperature - m.lse[at];
}

}  // namespace

void most_likely(const MostLikely& m, std::int64_t count) {
  launch("most_likely", most_likely_kernel, blocks_for(count, 1), kMergeThreads,
         merge_bytes(m.rows.vocab), m);
}

}  // namespace troupe::kernels::cuda
