// Probes of the device's limits: multiply-adds from registers on every multiprocessor, and one read
// of memory. The caller takes the time; launch and return account for 20 microseconds of it.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/primitives.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kFmaBlocks = 2;   // per multiprocessor
constexpr int kChains = 16;     // per thread
constexpr int kTiles = 8;       // per warp of the tensor-core probe; each is a chain
constexpr int kReadBlocks = 8;  // per multiprocessor
constexpr int kReads = 4;       // per thread, in flight at once

__global__ void __launch_bounds__(kThreads)
    fma_kernel(std::int64_t rounds, float start, float factor, float term, float* out) {
  float chain[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i)
    chain[i] = start + static_cast<float>(i);
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma unroll
    for (int i = 0; i < kChains; ++i)
      chain[i] = __fmaf_rn(chain[i], factor, term);
  float sum = chain[0];
#pragma unroll
  for (int i = 1; i < kChains; ++i)
    sum = sum + chain[i];
  // The sum is never -1, but the compiler does not know that.
  if ((blockIdx.x == 0 && threadIdx.x == 0) || sum == -1.0f) *out = sum;
}

// Products of ones, bound by the rate of the instruction.
__global__ void __launch_bounds__(kThreads) mma_kernel(std::int64_t rounds, float* out) {
  constexpr std::uint32_t kOnes = 0x3f803f80u;  // two bfloat16
  const std::uint32_t a[4] = {kOnes, kOnes, kOnes, kOnes}, b[2] = {kOnes, kOnes};
  float tile[kTiles][4] = {};
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma unroll
    for (int i = 0; i < kTiles; ++i)
      mma_bf16(tile[i], a, b);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
    sum = sum + ((tile[i][0] + tile[i][1]) + (tile[i][2] + tile[i][3]));
  if ((blockIdx.x == 0 && threadIdx.x == 0) || sum == -1.0f) *out = sum;
}

// Thread 0 reads the unaligned ends.
__global__ void __launch_bounds__(kThreads) read_kernel(
    const float* x, std::int64_t head, std::int64_t quads, std::int64_t count, float* out) {
  const auto* const quad = reinterpret_cast<const float4*>(x + head);
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t me = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  float sum = 0.0f;
  std::int64_t i = me;
  for (; i + (kReads - 1) * stride < quads; i += kReads * stride) {
    float4 value[kReads];
#pragma unroll
    for (int j = 0; j < kReads; ++j)
      value[j] = __ldcs(quad + i + j * stride);
#pragma unroll
    for (int j = 0; j < kReads; ++j)
      sum = sum + ((value[j].x + value[j].y) + (value[j].z + value[j].w));
  }
  for (; i < quads; i += stride)
    sum = sum + ((quad[i].x + quad[i].y) + (quad[i].z + quad[i].w));
  if (me == 0) {
    for (std::int64_t at = 0; at < head; ++at)
      sum = sum + x[at];
    for (std::int64_t at = head + 4 * quads; at < count; ++at)
      sum = sum + x[at];
  }
  for (int step = 16; step > 0; step /= 2)
    sum = sum + __shfl_xor_sync(kAllLanes, sum, step);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

}  // namespace

double fma_probe(std::int64_t rounds, float* sink) {
  const Current& device = current_device();
  const int blocks = device.multiprocessors * kFmaBlocks;
  launch("fma_probe", fma_kernel, static_cast<unsigned>(blocks), kThreads, 0, rounds, *sink, 0.5f,
         1.0f, static_cast<float*>(device.numbers));
  *sink = read_number<float>();
  return 2.0 * static_cast<double>(rounds) * blocks * kThreads * kChains;
}

double mma_probe(std::int64_t rounds, float* sink) {
  const Current& device = current_device();
  const int blocks = device.multiprocessors * kFmaBlocks;
  launch("mma_probe", mma_kernel, static_cast<unsigned>(blocks), kThreads, 0, rounds,
         static_cast<float*>(device.numbers));
  *sink = read_number<float>();
  return 2.0 * 16 * 8 * 16 * static_cast<double>(rounds) * blocks * (kThreads / 32) * kTiles;
}

float read_probe(const float* x, std::int64_t count) {
  const Current& device = current_device();
  auto* const sum = static_cast<float*>(device.numbers);
  check(cudaMemsetAsync(sum, 0, sizeof(float), device.stream), "read_probe");
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x) / 4 % 4);
  std::int64_t head = (4 - past) % 4;
  if (head > count) head = count;
  launch("read_probe", read_kernel, static_cast<unsigned>(device.multiprocessors * kReadBlocks),
         kThreads, 0, x, head, (count - head) / 4, count, sum);
  return read_number<float>();
}

}  // namespace troupe::kernels::cuda
