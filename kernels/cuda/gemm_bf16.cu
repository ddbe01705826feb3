// Products of bfloat16 with many rows. Bound by the tensor cores. A block of four warps computes a
// tile of C, with F x N fragments per warp in registers. Slabs of 32 steps of k pass through shared
// memory. Panel lines, whose layout already is that of fragments of B, are copied asynchronously;
// rows of A go through registers, where they are rounded. Rows and lines are padded so that the 32
// words of a fragment lie in different banks.
#include "kernels/cuda/gemm_bf16.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kSlab = 32, kPairs = kSlab / 2;
constexpr int kRowWords = kPairs + 4;
constexpr int kThreads = 128;

// A tile for two by two warps.
template <int F_, int N_>
struct Shape {
  static constexpr int F = F_, N = N_;  // fragments per warp: of 16 rows and of 8 columns
  static constexpr int kM = 2 * 16 * F, kN = 2 * 8 * N;
  static constexpr int kLineWords = kN + 8;
};
using Large = Shape<4, 8>;   // 128 x 128
using Middle = Shape<2, 4>;  // 64 x 64

// A slab's rows of A, in registers.
template <class S>
class Rows {
 public:
  __device__ void read(const GemmPart& p, std::int64_t m, std::int64_t k) {
#pragma unroll
    for (int i = 0; i < kReads; ++i) {
      const std::int64_t row = m + row_of(p, i), at = k + depth_of(p, i);
      const bool there = row < p.m_end;
      const float* const from =
          p.g.a_by_columns ? p.g.a + at * p.g.lda + row : p.g.a + row * p.g.lda + at;
      const std::int64_t step = p.g.a_by_columns ? p.g.lda : 1;
      if (there && p.a_vectors && !p.g.a_by_columns && at + 4 <= p.g.k) {
        x_[i] = *reinterpret_cast<const float4*>(from);
      } else {
        x_[i].x = there && at < p.g.k ? from[0] : 0.0f;
        x_[i].y = there && at + 1 < p.g.k ? from[step] : 0.0f;
        x_[i].z = there && at + 2 < p.g.k ? from[2 * step] : 0.0f;
        x_[i].w = there && at + 3 < p.g.k ? from[3 * step] : 0.0f;
      }
    }
  }
  __device__ void store(const GemmPart& p, std::uint32_t (*to)[kRowWords]) const {
#pragma unroll
    for (int i = 0; i < kReads; ++i)
      *reinterpret_cast<uint2*>(&to[row_of(p, i)][depth_of(p, i) / 2]) =
          make_uint2(rounded_pair(x_[i].x, x_[i].y), rounded_pair(x_[i].z, x_[i].w));
  }

 private:
  static constexpr int kReads = S::kM * kSlab / 4 / kThreads;
  // Adjacent threads read adjacent memory.
  __device__ static int piece(int i) {
    return i * kThreads + static_cast<int>(threadIdx.x);
  }
  __device__ static int row_of(const GemmPart& p, int i) {
    return p.g.a_by_columns ? piece(i) % S::kM : piece(i) / (kSlab / 4);
  }
  __device__ static int depth_of(const GemmPart& p, int i) {
    return (p.g.a_by_columns ? piece(i) / S::kM : piece(i) % (kSlab / 4)) * 4;
  }
  float4 x_[kReads];
};

template <class S>
__device__ void fetch_lines(const GemmPart& p,
                            std::int64_t panel_begin,
                            std::int64_t k,
                            std::uint32_t (*to)[S::kLineWords]) {
  const std::int64_t lines = (p.g.k + 1) / 2;
  const auto* const from = static_cast<const std::uint32_t*>(p.g.b.data);
#pragma unroll
  for (int i = 0; i < S::kN * kPairs / 4 / kThreads; ++i) {
    const int piece = i * kThreads + static_cast<int>(threadIdx.x);
    const int panel = piece / (kPairs * 4), line = piece / 4 % kPairs, column = piece % 4 * 4;
    const std::int64_t whole = panel_begin + panel;
    const bool there = whole < p.panel_end && k / 2 + line < lines;
    copy_async(&to[line][panel * static_cast<int>(kPanel) + column],
               there ? from + (whole * lines + k / 2 + line) * kPanel + column : from, there);
  }
  copy_async_commit();
}

template <class S>
__global__ void __launch_bounds__(kThreads, 2) tile_kernel(GemmPart p) {
  __align__(16) __shared__ std::uint32_t a[2][S::kM][kRowWords];
  __align__(16) __shared__ std::uint32_t b[2][kPairs][S::kLineWords];
  const FragmentPlace place;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int row = warp / 2 * 16 * S::F, column = warp % 2 * 8 * S::N;  // of the warp, in the tile
  const std::int64_t m = p.m_begin + std::int64_t{blockIdx.x} * S::kM;
  const std::int64_t panel = p.panel_begin + std::int64_t{blockIdx.y} * (S::kN / kPanel);
  const std::int64_t n = panel * kPanel;
  float sum[S::F][S::N][4];
#pragma unroll
  for (int f = 0; f < S::F; ++f)
#pragma unroll
    for (int j = 0; j < S::N; ++j)
      start_fragment(p, place, m + row + f * 16, n + column + j * 8, sum[f][j]);
  Rows<S> rows;
  rows.read(p, m, 0);
  fetch_lines<S>(p, panel, 0, b[0]);
  rows.store(p, a[0]);
  int now = 0;
  for (std::int64_t k = 0; k < p.g.k; k += kSlab, now ^= 1) {
    copy_async_wait<0>();
    __syncthreads();  // the slab is complete, and no thread still reads the other one
    const bool more = k + kSlab < p.g.k;
    if (more) {
      fetch_lines<S>(p, panel, k + kSlab, b[now ^ 1]);
      rows.read(p, m, k + kSlab);
    }
#pragma unroll
    for (int pair = 0; pair < kPairs; pair += 8) {
      if (k + pair * 2 >= p.g.k) break;  // the same number of products as the few-rows form
      std::uint32_t x[S::F][4];
#pragma unroll
      for (int f = 0; f < S::F; ++f)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          x[f][i] = a[now][row + f * 16 + i % 2 * 8 + place.row][pair + i / 2 * 4 + place.column];
#pragma unroll
      for (int j = 0; j < S::N; ++j) {
        const std::uint32_t y[2] = {b[now][pair + place.column][column + j * 8 + place.row],
                                    b[now][pair + place.column + 4][column + j * 8 + place.row]};
#pragma unroll
        for (int f = 0; f < S::F; ++f)
          mma_bf16(sum[f][j], x[f], y);
      }
    }
    if (more) rows.store(p, a[now ^ 1]);
  }
#pragma unroll
  for (int f = 0; f < S::F; ++f)
#pragma unroll
    for (int j = 0; j < S::N; ++j)
      end_fragment(p, place, m + row + f * 16, n + column + j * 8, sum[f][j]);
}

template <class S>
dim3 tiles_of(const GemmPart& p) {
  return dim3(blocks_for(p.rows(), S::kM), blocks_for(p.panels() * kPanel, S::kN));
}

}  // namespace

void gemm_bf16_tiles(const GemmPart& p) {
  if (enough_tiles(p.rows(), p.panels() * kPanel, Large::kM, Large::kN))
    launch("gemm_bf16_tiles", tile_kernel<Large>, tiles_of<Large>(p), kThreads, 0, p);
  else
    launch("gemm_bf16_tiles", tile_kernel<Middle>, tiles_of<Middle>(p), kThreads, 0, p);
}

}  // namespace troupe::kernels::cuda
