// Soft cap, softmax sums, log-probs and gradients over the vocabulary. Everything here makes one
// pass over the logits, so memory bounds it; in the sums, the about twenty instructions of an
// exponential take nearly as long. A team of 16 threads (lanes.cuh) keeps a block of 512 columns in
// registers between the maximum and the sum, and adjacent threads read adjacent columns.
// vocab_finish uses one thread block per row; a single thread does the chain over the partial sums
// (about 300 steps from shared memory).
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/vocab_merge.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTeams = kThreads / kLanes;
constexpr int kBlock = static_cast<int>(kVocabBlock);

__device__ float zero_for_minus_infinity(float max) {
  return max == -infinity() ? 0.0f : max;
}

__global__ void __launch_bounds__(kThreads)
    softcap_kernel(SoftCap s, std::int64_t row_begin, unsigned per_row) {
  const std::int64_t column = blockIdx.x % per_row * kThreads + threadIdx.x;
  if (column >= s.columns) return;
  float& value = s.x[(row_begin + blockIdx.x / per_row) * s.ldx + column];
  value = s.cap * tanh_f32(value / s.cap);
}

// A thread's part of one block's sum of p s.
__device__ float weighted(
    const float* logits, std::int64_t count, int lane, float inv_temperature, float lse) {
  float sum = 0.0f;
#pragma unroll 8
  for (std::int64_t i = lane; i < count; i += kLanes) {
    const float s = logits[i] * inv_temperature;
    const float p = exp_f32(s - lse);
    sum = __fmaf_rn(p, p == 0.0f ? 0.0f : s, sum);  // avoids 0 * infinity
  }
  return sum;
}

// One team per row and block.
__global__ void __launch_bounds__(kThreads) sums_kernel(
    VocabRows v, std::int64_t row_begin, unsigned rows, std::int64_t block_begin, unsigned blocks) {
  const int lane = threadIdx.x % kLanes;
  const unsigned team = blockIdx.x * kTeams + threadIdx.x / kLanes;
  const bool idle = team >= rows * blocks;  // still takes part in the warp's shuffles
  const std::int64_t row = row_begin + (idle ? 0 : team / blocks);
  const std::int64_t block = block_begin + (idle ? 0 : team % blocks);
  const std::int64_t column = block * kVocabBlock;
  const int count =
      static_cast<int>(v.vocab - column < kVocabBlock ? v.vocab - column : kVocabBlock);
  const float* const logits = v.logits + row * v.ld + column;
  const float inv_temperature = v.inv_temperature[row];
  // Missing columns of the last block count as minus infinity, which changes neither maximum nor
  // sum.
  float s[kBlock / kLanes];
#pragma unroll
  for (int j = 0; j < kBlock / kLanes; ++j)
    s[j] = j * kLanes + lane < count ? logits[j * kLanes + lane] * inv_temperature : -infinity();
  float max = -infinity();
#pragma unroll
  for (int j = 0; j < kBlock / kLanes; ++j)
    max = larger(s[j], max);
  max = lanes_max(max);
  const float shift = zero_for_minus_infinity(max);
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kBlock / kLanes; ++j)
    sum = sum + exp_f32(s[j] - shift);
  sum = lanes_sum(sum);
  if (idle || lane != 0) return;
  const std::int64_t at = row * vocab_blocks(v.vocab) + block;
  v.block_max[at] = max;
  v.block_sum[at] = sum;
}

__global__ void __launch_bounds__(kMergeThreads)
    finish_kernel(VocabFinish v, std::int64_t row_begin) {
  __shared__ float shared_lse;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = row_begin + blockIdx.x;
  const std::int64_t all = vocab_blocks(v.rows.vocab);
  const MergedBlocks merged =
      merge_blocks(v.rows.block_max + row * all, v.rows.block_sum + row * all, v.rows.vocab,
                   reinterpret_cast<float*>(dynamic_shared()));
  if (thread == 0) v.lse[row] = shared_lse = merged_lse(merged);
  if (v.entropy == nullptr && v.targets.begin == nullptr) return;
  __syncthreads();
  const float lse = shared_lse;
  const float* const logits = v.rows.logits + row * v.rows.ld;
  const float inv_temperature = v.rows.inv_temperature[row];
  if (v.entropy != nullptr) {
    constexpr int kRowTeams = kMergeThreads / kLanes;
    float* const parts = merged.scale;  // no longer needed
    for (int first = 0; first < merged.blocks; first += kRowTeams) {
      const int block = first + thread / kLanes;
      const std::int64_t column = block * kVocabBlock;
      const std::int64_t count =
          v.rows.vocab - column < kVocabBlock ? v.rows.vocab - column : kVocabBlock;
      const float part =
          lanes_sum(weighted(logits + column, count, thread % kLanes, inv_temperature, lse));
      if (block < merged.blocks && thread % kLanes == 0) parts[block] = part;
    }
    __syncthreads();
    if (thread == 0) {
      float sum = 0.0f;
#pragma unroll 8
      for (int b = 0; b < merged.blocks; ++b)
        sum = sum + parts[b];
      v.entropy[row] = lse - sum;
    }
  }
  if (v.targets.begin == nullptr) return;
  for (std::int32_t i = v.targets.begin[row] + thread; i < v.targets.begin[row + 1];
       i += kMergeThreads) {
    const std::int32_t target = v.targets.target[i];
    const float scaled = logits[v.targets.token[target]] * inv_temperature;
    v.logprobs[target] = scaled - lse;
  }
}

constexpr int kGradThreads = 128;
constexpr int kGradColumns = kBlock / kGradThreads;  // per thread

// One thread block per row and block of columns. All threads loop over the row's targets, which are
// few; each adds those in its own columns.
__global__ void __launch_bounds__(kGradThreads, 12)
    grad_kernel(VocabGrad v, std::int64_t row_begin, std::int64_t block_begin, unsigned blocks) {
  const std::int64_t row = row_begin + blockIdx.x / blocks;
  const std::int64_t begin = (block_begin + blockIdx.x % blocks) * kVocabBlock;
  const std::int64_t left = v.vocab - begin;
  const int count = static_cast<int>(left < kVocabBlock ? left : kVocabBlock);
  const int thread = static_cast<int>(threadIdx.x);
  float* const logits = v.logits + row * v.ld + begin;
  float z[kGradColumns];
#pragma unroll
  for (int j = 0; j < kGradColumns; ++j)
    z[j] = j * kGradThreads + thread < count ? logits[j * kGradThreads + thread] : 0.0f;

  const std::int32_t first = v.targets.begin[row], last = v.targets.begin[row + 1];
  float logprob = 0.0f, entropy_grad = 0.0f;
  bool here = false;  // whether a target is a column of this block
  for (std::int32_t i = first; i < last; ++i) {
    const std::int32_t target = v.targets.target[i];
    const std::int64_t at = v.targets.token[target] - begin;
    here = here || (at >= 0 && at < count);
    if (v.dlogprobs != nullptr) logprob = logprob + v.dlogprobs[target];
    if (v.dentropies != nullptr) entropy_grad = entropy_grad + v.dentropies[target];
  }
  const float lse = v.lse[row];
  const float entropy = v.entropy == nullptr ? 0.0f : v.entropy[row];
  float grad[kGradColumns];
#pragma unroll
  for (int j = 0; j < kGradColumns; ++j) {
    const float centred = z[j] * v.inv_temperature - lse;
    const float p = exp_f32(centred);
    const float spread = p == 0.0f ? 0.0f : centred + entropy;
    grad[j] = __fmaf_rn(-(entropy_grad * p), spread, logprob * (0.0f - p)) * v.inv_temperature;
  }
  for (std::int32_t i = first; here && v.dlogprobs != nullptr && i < last; ++i) {
    const std::int32_t target = v.targets.target[i];
    const std::int64_t at = v.targets.token[target] - begin;
    const float direct = v.dlogprobs[target] * v.inv_temperature;
#pragma unroll
    for (int j = 0; j < kGradColumns; ++j)
      if (at == j * kGradThreads + thread) grad[j] = grad[j] + direct;
  }
#pragma unroll
  for (int j = 0; j < kGradColumns; ++j) {
    if (v.softcap > 0.0f) {
      const float t = z[j] / v.softcap;
      grad[j] = grad[j] * __fmaf_rn(-t, t, 1.0f);
    }
    if (j * kGradThreads + thread < count) logits[j * kGradThreads + thread] = grad[j];
  }
}

}  // namespace

void softcap(const SoftCap& s, Range rows) {
  const std::int64_t per_row = (s.columns + kThreads - 1) / kThreads;
  launch("softcap", softcap_kernel, blocks_for(rows.size() * per_row, 1), kThreads, 0, s,
         rows.begin, per_row);
}

void vocab_sums(const VocabRows& v, Range rows, Range blocks) {
  if (rows.empty() || blocks.empty()) return;
  launch("vocab_sums", sums_kernel, blocks_for(rows.size() * blocks.size(), kTeams), kThreads, 0, v,
         rows.begin, rows.size(), blocks.begin, blocks.size());
}

void vocab_finish(const VocabFinish& v, Range rows) {
  if (rows.empty()) return;
  launch("vocab_finish", finish_kernel, blocks_for(rows.size(), 1), kMergeThreads,
         merge_bytes(v.rows.vocab), v, rows.begin);
}

void vocab_grad(const VocabGrad& v, Range rows, Range blocks) {
  if (rows.empty() || blocks.empty()) return;
  launch("vocab_grad", grad_kernel, blocks_for(rows.size() * blocks.size(), 1), kGradThreads, 0, v,
         rows.begin, blocks.begin, blocks.size());
}

}  // namespace troupe::kernels::cuda
