// Moments of the optimiser in fewer bits (kernels/moment_codes.hpp): a block of threads for each
// block of numbers. Bound by memory.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// A block of the moment, as the host's code has it.
struct MomentBlock {
  std::int64_t index, size, element, at;
  float* numbers;
};

__device__ MomentBlock block_of(const CompactMoment& c, std::int64_t index) {
  const std::int64_t at = index * kNormChunk, left = c.count - at;
  return {index, left < kNormChunk ? left : kNormChunk,
          (index * c.block_step + c.block_at) * kNormChunk, at,
          c.numbers + (index - c.first) * kNormChunk};
}

__global__ void __launch_bounds__(kThreads) expand_kernel(CompactMoment c, std::int64_t first) {
  const MomentBlock block = block_of(c, first + blockIdx.x);
  const auto* const wide = static_cast<const std::uint16_t*>(c.codes) + block.at;
  const auto* const narrow = static_cast<const std::uint8_t*>(c.codes) + block.at;
  const float scale = has_scales(c.code) ? c.scales[block.index] : 0.0f;
  for (std::int64_t i = threadIdx.x; i < block.size; i += kThreads)
    block.numbers[i] = c.code == MomentCode::kBf16 ? moment_codes::from_16(wide[i])
                                                   : moment_codes::from_8(c.code, narrow[i], scale);
}

__global__ void __launch_bounds__(kThreads) compress_kernel(CompactMoment c, std::int64_t first) {
  __shared__ std::int32_t largest[kThreads];
  const MomentBlock block = block_of(c, first + blockIdx.x);
  float scale = 0.0f;
  if (has_scales(c.code)) {
    std::int32_t own = 0;
    for (std::int64_t i = threadIdx.x; i < block.size; i += kThreads) {
      const std::int32_t bits = moment_codes::magnitude_bits(block.numbers[i]);
      own = bits > own ? bits : own;
    }
    largest[threadIdx.x] = own;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (static_cast<int>(threadIdx.x) < half) {
        const std::int32_t other = largest[threadIdx.x + half];
        if (other > largest[threadIdx.x]) largest[threadIdx.x] = other;
      }
    }
    __syncthreads();
    scale = __int_as_float(largest[0]);
    if (threadIdx.x == 0) c.scales[block.index] = scale;
  }
  auto* const wide = static_cast<std::uint16_t*>(c.codes) + block.at;
  auto* const narrow = static_cast<std::uint8_t*>(c.codes) + block.at;
  const std::uint32_t seed = moment_codes::block_seed(c.seed, block.element);
  for (std::int64_t i = threadIdx.x; i < block.size; i += kThreads) {
    const std::uint32_t by =
        moment_codes::noise(seed, static_cast<std::uint32_t>(block.element + i));
    if (c.code == MomentCode::kBf16)
      wide[i] = moment_codes::to_16(block.numbers[i], c.rounding, by);
    else
      narrow[i] = moment_codes::to_8(c.code, block.numbers[i], scale, c.rounding, by);
  }
}

}  // namespace

void expand_moment(const CompactMoment& c, Range blocks) {
  launch("expand_moment", expand_kernel, static_cast<unsigned>(blocks.size()), kThreads, 0, c,
         blocks.begin);
}

void compress_moment(const CompactMoment& c, Range blocks) {
  launch("compress_moment", compress_kernel, static_cast<unsigned>(blocks.size()), kThreads, 0, c,
         blocks.begin);
}

}  // namespace troupe::kernels::cuda
