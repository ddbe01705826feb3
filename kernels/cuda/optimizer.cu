// AdamW, SGD, sums of squares and the check for non-finite numbers. Each is one pass over memory,
// which bounds it. A thread has several elements, a block's width apart, so that enough loads are
// in flight at any alignment.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kOwn = 4;  // elements per thread
constexpr int kTeams = kThreads / kLanes;

__global__ void __launch_bounds__(kThreads) adamw_kernel(AdamW a, Range elements) {
  const std::int64_t first =
      elements.begin + std::int64_t{blockIdx.x} * (kThreads * kOwn) + threadIdx.x;
  const float decay = a.lr * a.weight_decay;
  float param[kOwn], grad[kOwn], m[kOwn], v[kOwn];
#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    const std::int64_t i = first + j * kThreads;
    const bool there = i < elements.end;
    param[j] = there ? a.param[i] : 0.0f;
    grad[j] = there ? a.grad[i] : 0.0f;
    m[j] = there ? a.m[i] : 0.0f;
    v[j] = there ? a.v[i] : 0.0f;
  }
#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    const std::int64_t i = first + j * kThreads;
    if (i >= elements.end) continue;
    const float g = grad[j] * a.grad_scale;
    const float new_m = __fmaf_rn(a.beta1, m[j], (1.0f - a.beta1) * g);
    const float new_v = __fmaf_rn(a.beta2, v[j], ((1.0f - a.beta2) * g) * g);
    const float denominator = __fsqrt_rn(new_v / a.correction2) + a.eps;
    const float step = (a.lr * (new_m / a.correction1)) / denominator;
    a.m[i] = new_m;
    a.v[i] = new_v;
    a.param[i] = __fmaf_rn(-decay, param[j], param[j]) - step;
  }
}

__global__ void __launch_bounds__(kThreads) sgd_kernel(Sgd s, Range elements) {
  const std::int64_t first =
      elements.begin + std::int64_t{blockIdx.x} * (kThreads * kOwn) + threadIdx.x;
  float param[kOwn], grad[kOwn], m[kOwn];
#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    const std::int64_t i = first + j * kThreads;
    const bool there = i < elements.end;
    param[j] = there ? s.param[i] : 0.0f;
    grad[j] = there ? s.grad[i] : 0.0f;
    m[j] = there && s.m != nullptr ? s.m[i] : 0.0f;
  }
#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    const std::int64_t i = first + j * kThreads;
    if (i >= elements.end) continue;
    const float g = __fmaf_rn(s.weight_decay, param[j], grad[j] * s.grad_scale);
    const float new_m = s.m != nullptr ? __fmaf_rn(s.momentum, m[j], g) : g;
    if (s.m != nullptr) s.m[i] = new_m;
    s.param[i] = __fmaf_rn(-s.lr, new_m, param[j]);
  }
}

// A team of 16 threads per chunk; they act as the reference's lanes.
__global__ void __launch_bounds__(kThreads) sum_squares_kernel(SumSquares s, Range chunks) {
  const std::int64_t chunk =
      chunks.begin + std::int64_t{blockIdx.x} * kTeams + threadIdx.x / kLanes;
  const bool idle = chunk >= chunks.end;  // still takes part in the warp's shuffles
  const std::int64_t last = (chunk + 1) * kNormChunk < s.count ? (chunk + 1) * kNormChunk : s.count;
  double sum = 0.0;
#pragma unroll 8
  for (std::int64_t i = idle ? last : chunk * kNormChunk + threadIdx.x % kLanes; i < last;
       i += kLanes) {
    const double value = static_cast<double>(s.x[i]);
    sum = sum + value * value;
  }
  sum = lanes_sum(sum);
  if (!idle && threadIdx.x % kLanes == 0) s.sums[chunk] = sum;
}

__global__ void __launch_bounds__(kThreads)
    finite_kernel(const float* x, std::int64_t count, unsigned* found) {
  const std::int64_t first = std::int64_t{blockIdx.x} * (kThreads * kOwn) + threadIdx.x;
  bool all = true;
#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    const std::int64_t i = first + j * kThreads;
    const unsigned bits = i < count ? __float_as_uint(x[i]) : 0u;
    all = all && (bits & 0x7f800000u) != 0x7f800000u;
  }
  if (!all) atomicOr(found, 1u);
}

}  // namespace

void adamw(const AdamW& a, Range elements) {
  if (elements.empty()) return;
  launch("adamw", adamw_kernel, blocks_for(elements.size(), kThreads * kOwn), kThreads, 0, a,
         elements);
}

void sgd(const Sgd& s, Range elements) {
  if (elements.empty()) return;
  launch("sgd", sgd_kernel, blocks_for(elements.size(), kThreads * kOwn), kThreads, 0, s, elements);
}

void sum_squares(const SumSquares& s, Range chunks) {
  if (chunks.empty()) return;
  launch("sum_squares", sum_squares_kernel, blocks_for(chunks.size(), kTeams), kThreads, 0, s,
         chunks);
}

bool all_finite(const float* x, std::int64_t count) {
  const Current& device = current_device();
  check(cudaMemsetAsync(device.numbers, 0, sizeof(unsigned), device.stream), "all_finite");
  launch("all_finite", finite_kernel, blocks_for(count, kThreads * kOwn), kThreads, 0, x, count,
         static_cast<unsigned*>(device.numbers));
  return read_number<unsigned>() == 0;
}

}  // namespace troupe::kernels::cuda
