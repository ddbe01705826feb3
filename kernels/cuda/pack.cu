// Packs matrices into panels. Bound by memory. A block takes a panel's 16 rows of W through shared
// memory, kChunk steps of k at a time, so that reads of rows and writes of lines are both
// contiguous. For int8 it first scans its whole rows for the scales.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/panels.cuh"
#include "kernels/cuda/primitives.cuh"
#include "kernels/cuda/scalar.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kColumns = static_cast<int>(kPanel);
constexpr int kChunk = 128;         // steps of k held at a time
constexpr int kChunksPerBlock = 4;  // fewer thread blocks, still enough for all multiprocessors
constexpr int kPlainRows = 64;      // steps of k per block of pack_plain
constexpr unsigned kGrid_max = 65535;

// Sets the scale of a column from the bits of its largest magnitude. Returns the factor for its
// numbers before rounding.
__device__ float choose_scale(std::uint32_t largest, float& scale) {
  if (largest >= 0x7f800000u) {
    scale = not_a_number();
    return 0.0f;
  }
  const float magnitude = __uint_as_float(largest);
  if (magnitude < kInt8Least) return scale = 0.0f;
  scale = magnitude / 127.0f;
  return 127.0f / magnitude;
}

// Sixteen adjacent threads handle one column.
__device__ void choose_scales(const Pack& p, std::int64_t panel, float* inverse) {
  const int team = static_cast<int>(threadIdx.x) / 16, member = static_cast<int>(threadIdx.x) % 16;
  const std::int64_t column = panel * kPanel + team;
  std::uint32_t largest = 0;
  for (std::int64_t i = member; column < p.n && i < p.k; i += 16) {
    const std::uint32_t bits = __float_as_uint(p.from[column * p.ldf + i]) & 0x7fffffffu;
    if (bits > largest) largest = bits;
  }
  for (int step = 8; step > 0; step /= 2) {
    const std::uint32_t other = __shfl_xor_sync(kAllLanes, largest, step);
    if (other > largest) largest = other;
  }
  if (member != 0) return;
  float scale = 0.0f;
  inverse[team] = choose_scale(largest, scale);
  p.to.scale[column] = scale;
}

__device__ std::uint32_t int8_bits(float x, float inverse) {
  if (inverse == 0.0f) return 0;
  return static_cast<std::uint32_t>(static_cast<int>(rintf(x * inverse))) & 0xffu;
}

__global__ void __launch_bounds__(kThreads)
    pack_kernel(Pack p, std::int64_t panel_begin, int chunks) {
  __shared__ float rows[kColumns][kChunk + 1];
  __shared__ float inverse[kColumns];
  const std::int64_t panel = panel_begin + blockIdx.x;
  const bool int8 = p.to.dtype == PanelDtype::kInt8;
  if (int8) choose_scales(p, panel, inverse);
  auto* const out = reinterpret_cast<std::uint32_t*>(static_cast<char*>(p.to.data) +
                                                     panel * panel_bytes(p.to.dtype, p.k));
  const int depth = static_cast<int>(line_depth(p.to.dtype));
  const std::int64_t lines = (p.k + depth - 1) / depth;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t begin = (std::int64_t{blockIdx.y} * chunks + chunk) * kChunk;
    if (begin >= p.k) return;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < kColumns * kChunk; i += kThreads) {
      const int c = i / kChunk, at = i % kChunk;
      const std::int64_t column = panel * kPanel + c;
      rows[c][at] = column < p.n && begin + at < p.k ? p.from[column * p.ldf + begin + at] : 0.0f;
    }
    __syncthreads();
    // Words of 4 bytes, sixteen per line.
    for (int i = static_cast<int>(threadIdx.x); i < kChunk / depth * kColumns; i += kThreads) {
      const int line = i / kColumns, word = i % kColumns, at = line * depth;
      if (begin / depth + line >= lines) break;
      std::uint32_t bits = 0;
      if (depth == 1) {
        bits = __float_as_uint(rows[word][at]);
      } else if (depth == 2) {
        bits = bf16_bits(rows[word][at]) | bf16_bits(rows[word][at + 1]) << 16;
      } else {  // four columns of one k
        const int c = word % 4 * 4;
        for (int j = 0; j < 4; ++j)
          bits |= int8_bits(rows[c + j][at + word / 4], inverse[c + j]) << (8 * j);
      }
      out[(begin / depth + line) * kColumns + word] = bits;
    }
  }
}

__global__ void __launch_bounds__(kThreads) pack_plain_kernel(Pack p, Range columns) {
  const std::int64_t column = columns.begin + std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= columns.end) return;
  float* const out =
      static_cast<float*>(p.to.data) + column / kPanel * p.k * kPanel + column % kPanel;
  for (std::int64_t begin = std::int64_t{blockIdx.y} * kPlainRows; begin < p.k;
       begin += std::int64_t{gridDim.y} * kPlainRows) {
    const std::int64_t end = begin + kPlainRows < p.k ? begin + kPlainRows : p.k;
#pragma unroll 4
    for (std::int64_t i = begin; i < end; ++i)
      out[i * kPanel] = column < p.n ? p.from[i * p.ldf + column] : 0.0f;
  }
}

}  // namespace

void pack_transposed(const Pack& p, Range panels) {
  const std::int64_t all = (p.k + kChunk - 1) / kChunk;
  // The scales need whole rows, so for int8 one block takes all of k.
  std::int64_t chunks = p.to.dtype == PanelDtype::kInt8 ? all : kChunksPerBlock;
  if (chunks * kGrid_max < all) chunks = blocks_for(all, kGrid_max);
  launch("pack_transposed", pack_kernel,
         dim3(blocks_for(panels.size(), 1), blocks_for(all, chunks > 0 ? chunks : 1)), kThreads, 0,
         p, panels.begin, static_cast<int>(chunks));
}

void pack_plain(const Pack& p, Range panels) {
  const unsigned rows = blocks_for(p.k, kPlainRows);
  launch("pack_plain", pack_plain_kernel,
         dim3(blocks_for(panels.size() * kPanel, kThreads), rows < kGrid_max ? rows : kGrid_max),
         kThreads, 0, p, panels.times(kPanel));
}

}  // namespace troupe::kernels::cuda
