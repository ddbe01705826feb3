// Products of bfloat16 with many rows. Bound by the tensor cores and, in smaller tiles, by L2. A
// block of four or eight warps computes a tile of C, with F x N fragments per warp in registers.
// Slabs of 32 steps of k of both operands are copied asynchronously into shared memory, three
// ahead. Rows of A come rounded; their pieces of 16 bytes are permuted so that eight rows lie in
// different banks. Panel lines already are words of B's fragments: a lane reads four columns at
// once, and lines are padded.
#include "kernels/cuda/gemm_bf16.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kSlab = 32, kPairs = kSlab / 2;
constexpr int kStages = 4;
static_assert(kSlab == kRoundedStep);

// A tile for two by kWarpsN warps.
template <int F_, int N_, int WN>
struct Shape {
  static constexpr int F = F_, N = N_;  // fragments per warp: of 16 rows and of 8 columns
  static constexpr int kWarpsN = WN, kThreads = 64 * WN, kBlocks = WN > 2 ? 1 : 2;
  static constexpr int kM = 2 * 16 * F, kN = WN * 8 * N;
  static constexpr int kLineWords = kN + 8;
  static constexpr int kRowWords = kPairs;
  static constexpr int kStageWords = kM * kRowWords + kPairs * kLineWords;
  static constexpr std::size_t kShared_bytes = std::size_t{kStages} * kStageWords * 4;
};
using Wide = Shape<4, 8, 4>;    // 128 x 256
using Large = Shape<4, 8, 2>;   // 128 x 128
using Middle = Shape<2, 4, 2>;  // 64 x 64

// The word of a slab's rows where a piece of four words begins: pieces change places with the row.
__device__ int piece_of(int row, int piece) {
  return row * kPairs + (piece ^ (row / 2 % 4)) * 4;
}

template <class S>
__device__ void fetch_rows_of_slab(
    const GemmPart& p, const RoundedRows& a, std::int64_t m, std::int64_t k, std::uint32_t* to) {
#pragma unroll
  for (int i = 0; i < S::kM * 4 / S::kThreads; ++i) {
    const int at = i * S::kThreads + static_cast<int>(threadIdx.x), row = at / 4, piece = at % 4;
    const bool there = m + row < p.m_end;
    const std::uint16_t* const from = a.data + (m - p.m_begin + row) * a.ld + k + piece * 8;
    copy_async(to + piece_of(row, piece), there ? from : a.data, there);
  }
}

template <class S>
__device__ void fetch_lines_of_slab(const GemmPart& p,
                                    std::int64_t panel_begin,
                                    std::int64_t k,
                                    std::uint32_t* to) {
  const std::int64_t lines = (p.g.k + 1) / 2;
  const auto* const from = static_cast<const std::uint32_t*>(p.g.b.data);
#pragma unroll
  for (int i = 0; i < S::kN * kPairs / 4 / S::kThreads; ++i) {
    const int piece = i * S::kThreads + static_cast<int>(threadIdx.x);
    const int panel = piece / (kPairs * 4), line = piece / 4 % kPairs, column = piece % 4 * 4;
    const std::int64_t whole = panel_begin + panel;
    const bool there = whole < p.panel_end && k / 2 + line < lines;
    copy_async(to + line * S::kLineWords + panel * static_cast<int>(kPanel) + column,
               there ? from + (whole * lines + k / 2 + line) * kPanel + column : from, there);
  }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks) tile_kernel(GemmPart p, RoundedRows a) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(dynamic_shared());
  const FragmentPlace place;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  // Of the warp, in the tile.
  const int row = warp / S::kWarpsN * 16 * S::F, column = warp % S::kWarpsN * 8 * S::N;
  const std::int64_t m = p.m_begin + std::int64_t{blockIdx.x} * S::kM;
  const std::int64_t panel = p.panel_begin + std::int64_t{blockIdx.y} * (S::kN / kPanel);
  const std::int64_t n = panel * kPanel;
  const auto fetch = [&](std::int64_t k, int slot) {
    if (k < p.g.k) {
      std::uint32_t* const to = shared + slot * S::kStageWords;
      fetch_rows_of_slab<S>(p, a, m, k, to);
      fetch_lines_of_slab<S>(p, panel, k, to + S::kM * S::kRowWords);
    }
    copy_async_commit();
  };
  float sum[S::F][S::N][4];
#pragma unroll
  for (int f = 0; f < S::F; ++f)
#pragma unroll
    for (int j = 0; j < S::N; j += 4)
      start_fragments<4>(p, place, m + row + f * 16, n + column + j * 8, &sum[f][j]);
#pragma unroll
  for (int slot = 0; slot < kStages - 1; ++slot)
    fetch(slot * kSlab, slot);
  int now = 0;
  for (std::int64_t k = 0; k < p.g.k; k += kSlab) {
    copy_async_wait<kStages - 2>();
    __syncthreads();  // the slab is complete, and no thread still reads the one before it
    fetch(k + (kStages - 1) * kSlab, now == 0 ? kStages - 1 : now - 1);
    const std::uint32_t* const rows = shared + now * S::kStageWords;
    const std::uint32_t* const lines = rows + S::kM * S::kRowWords;
#pragma unroll
    for (int step = 0; step < kSlab / 16; ++step) {
      if (k + step * 16 >= p.g.k) break;  // the same number of products as the few-rows form
      std::uint32_t x[S::F][4];
#pragma unroll
      for (int f = 0; f < S::F; ++f)
        load_matrices<false>(x[f], rows + piece_of(row + f * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < S::N; j += 4) {
        const std::uint32_t* const line =
            lines + (step * 8 + place.column) * S::kLineWords + column + j * 8 + place.row * 4;
        const uint4 low = *reinterpret_cast<const uint4*>(line);
        const uint4 high = *reinterpret_cast<const uint4*>(line + 4 * S::kLineWords);
        const std::uint32_t y[4][2] = {
            {low.x, high.x}, {low.y, high.y}, {low.z, high.z}, {low.w, high.w}};
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int f = 0; f < S::F; ++f)
            mma_bf16(sum[f][j + i], x[f], y[i]);
      }
    }
    now = now + 1 == kStages ? 0 : now + 1;
  }
#pragma unroll
  for (int f = 0; f < S::F; ++f)
#pragma unroll
    for (int j = 0; j < S::N; j += 4)
      end_fragments<4>(p, place, m + row + f * 16, n + column + j * 8, &sum[f][j]);
}

template <class S>
void start_tiles(const GemmPart& p, const RoundedRows& a) {
  const dim3 grid(blocks_for(p.rows(), S::kM), blocks_for(p.panels() * kPanel, S::kN));
  launch("gemm_bf16_tiles", tile_kernel<S>, grid, S::kThreads, S::kShared_bytes, p, a);
}

template <class S>
bool fills(const GemmPart& p) {
  return enough_tiles(p.rows(), p.panels() * kPanel, S::kM, S::kN);
}

}  // namespace

void gemm_bf16_tiles(const GemmPart& p, const RoundedRows& a) {
  if (fills<Wide>(p)) return start_tiles<Wide>(p, a);
  if (fills<Large>(p)) return start_tiles<Large>(p, a);
  start_tiles<Middle>(p, a);
}

}  // namespace troupe::kernels::cuda
