// Penalties, biases and masks on single logits, and the most likely tokens of a row.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/rank.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) change_kernel(ChangeLogits c, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const LogitChange change = c.change[i];
  float& logit = c.logits[change.row * c.ld + change.token];
  c.before[i] = logit;
  logit = changed_logit(logit, change, c.penalties[change.row]);
}

__global__ void __launch_bounds__(kThreads) restore_kernel(ChangeLogits c, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  c.logits[c.change[i].row * c.ld + c.change[i].token] = c.before[i];
}

// One thread block per list.
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

void change_logits(const ChangeLogits& c, std::int64_t count) {
  launch("change_logits", change_kernel, blocks_for(count, kThreads), kThreads, 0, c, count);
}

void restore_logits(const ChangeLogits& c, std::int64_t count) {
  launch("restore_logits", restore_kernel, blocks_for(count, kThreads), kThreads, 0, c, count);
}

void most_likely(const MostLikely& m, std::int64_t count) {
  launch("most_likely", most_likely_kernel, blocks_for(count, 1), kMergeThreads,
         merge_bytes(m.rows.vocab), m);
}

}  // namespace troupe::kernels::cuda
