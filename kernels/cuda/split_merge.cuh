// How splits of the keys (docs/adr/0019-attention-in-splits.md) are joined: one after another,
// ascending. Shared by the kernels of attention_splits.cu, so that all give the same bits.
#pragma once

#include "kernels/cuda/scalar.cuh"
#include "kernels/shapes.hpp"

namespace troupe::kernels::cuda {

// A query's maximum of the scores and sum of the weights over some keys.
struct Softmax {
  float max = -infinity(), sum = 0.0f;
  __device__ Softmax() {}
  __device__ Softmax(float m, float s) : max(m), sum(s) {}
};

// What the outputs of earlier splits and of the next one are multiplied by.
struct MergeFactors {
  float earlier, next;
};

// Adds the next split to the earlier ones.
__device__ inline MergeFactors merge_split(Softmax& all, const Softmax& next) {
  const float max = larger(next.max, all.max);
  const MergeFactors factors{exp_f32(all.max - max), exp_f32(next.max - max)};
  all.sum = __fmaf_rn(all.sum, factors.earlier, next.sum * factors.next);
  all.max = max;
  return factors;
}
__device__ inline float merge_output(float all, float next, const MergeFactors& factors) {
  return __fmaf_rn(all, factors.earlier, next * factors.next);
}
// The result of a finished sum. Adding zero turns -0 to 0: a sum of zeros may have either sign,
// depending on whether keys were multiplied that the query does not see.
__device__ inline float normalised(float sum, float inverse) {
  return sum * inverse + 0.0f;
}

// Which splits of kSplitKeys keys a query sees, if it sees keys [first, end).
struct SplitRange {
  int first, last;
  __device__ SplitRange(std::int64_t first_key, std::int64_t end)
      : first(static_cast<int>(first_key / kSplitKeys)),
        last(static_cast<int>((end - 1) / kSplitKeys)) {}
  __device__ int count() const { return last - first + 1; }
};

}  // namespace troupe::kernels::cuda
