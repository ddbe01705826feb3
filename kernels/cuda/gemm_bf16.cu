// Products of bfloat16 with many rows. Bound by the tensor cores and, in smaller tiles, by L2. A
// block of four or eight warps computes a tile of C, with F x N fragments per warp in registers.
// Slabs of 32 steps of k of both operands are copied asynchronously into shared memory, three
// ahead. Rows of A come rounded; their pieces of 16 bytes are permuted so that eight rows lie in
// different banks. Panel lines already are words of B's fragments, and lines are padded.
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
  static constexpr int kM = 2 * 16 * F, kN = WN * 8 * N, kPanels = kN / static_cast<int>(kPanel);
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

// Copies slab after slab of a tile's operands. A thread's pieces of an operand lie a fixed distance
// apart, in memory and in the slab, so it keeps one place for each. Of a piece that is not there
// nothing is read.
template <class S>
class Feed {
 public:
  __device__ Feed(const GemmPart& p, const RoundedRows& a, std::int64_t m, std::int64_t panel)
      : row_step_(a.ld * kRowsApart), lines_left_(static_cast<int>((p.g.k + 1) / 2)) {
    const int me = static_cast<int>(threadIdx.x), row = me / 4, own = me / (kPairs * 4);
    const std::int64_t panel_words = std::int64_t{lines_left_} * kPanel;
    const auto left = [](std::int64_t end, std::int64_t begin, int most) {
      return static_cast<int>(end - begin < most ? end - begin : most);
    };
    panel_step_ = panel_words * kPanelsApart;
    rows_left_ = left(p.m_end, m, S::kM) - row;
    panels_left_ = left(p.panel_end, panel, S::kPanels) - own;
    line_ = me / 4 % kPairs;
    row_to_ = piece_of(row, me % 4);
    line_to_ = S::kM * S::kRowWords + line_ * S::kLineWords + own * static_cast<int>(kPanel) +
               me % 4 * 4;
    rows_ = a.data + (m - p.m_begin + row) * a.ld + me % 4 * 8;
    lines_ = static_cast<const std::uint32_t*>(p.g.b.data) + (panel + own) * panel_words +
             line_ * kPanel + me % 4 * 4;
  }

  // Starts the copies of the next slab.
  __device__ void fetch(std::uint32_t* to) {
#pragma unroll
    for (int i = 0; i < S::kM / kRowsApart; ++i)
      copy_async(to + row_to_ + i * kRowsApart * kPairs, rows_ + i * row_step_,
                 i * kRowsApart < rows_left_);
#pragma unroll
    for (int i = 0; i < S::kPanels / kPanelsApart; ++i)
      copy_async(to + line_to_ + i * kPanelsApart * static_cast<int>(kPanel),
                 lines_ + i * panel_step_, i * kPanelsApart < panels_left_ && line_ < lines_left_);
    rows_ += kSlab;
    lines_ += kPairs * kPanel;
    lines_left_ -= kPairs;
  }

 private:
  static constexpr int kRowsApart = S::kThreads / 4, kPanelsApart = S::kThreads / (kPairs * 4);
  static_assert(kRowsApart % 8 == 0 && S::kM % kRowsApart == 0);

  const std::int64_t row_step_;
  std::int64_t panel_step_;
  int lines_left_;               // of a panel, from the next slab on
  int rows_left_, panels_left_;  // of the tile, from the thread's first on
  int line_, row_to_, line_to_;  // in the slab
  const std::uint16_t* rows_;
  const std::uint32_t* lines_;
};

// Tiles that run at one time are neighbours in both directions, so that what they read is little
// enough for L2.
struct TilePlace {
  unsigned row, column;
  __device__ TilePlace() {
    constexpr unsigned kTogether = 16;
    const unsigned rows = gridDim.x, columns = gridDim.y, id = blockIdx.y * rows + blockIdx.x;
    const unsigned first = id / (kTogether * columns) * kTogether;
    const unsigned count = rows - first < kTogether ? rows - first : kTogether;
    row = first + (id - first * columns) % count;
    column = (id - first * columns) / count;
  }
};

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks) tile_kernel(GemmPart p, RoundedRows a) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(dynamic_shared());
  const FragmentPlace place;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  // The warp's place in the tile.
  const int row = warp / S::kWarpsN * 16 * S::F, column = warp % S::kWarpsN * 8 * S::N;
  const TilePlace tile;
  const std::int64_t m = p.m_begin + std::int64_t{tile.row} * S::kM;
  const std::int64_t panel = p.panel_begin + std::int64_t{tile.column} * (S::kN / kPanel);
  const std::int64_t n = panel * kPanel;
  Feed<S> feed(p, a, m, panel);
  const auto fetch = [&](int k, int slot) {
    if (k < p.g.k) feed.fetch(shared + slot * S::kStageWords);
    copy_async_commit();
  };
  float sum[S::F][S::N][4];
#pragma unroll
  for (int f = 0; f < S::F; ++f)
#pragma unroll
    for (int j = 0; j < S::N; ++j)
      start_fragments<1>(p, place, m + row + f * 16, n + column + j * 8, &sum[f][j]);
#pragma unroll
  for (int slot = 0; slot < kStages - 1; ++slot)
    fetch(slot * kSlab, slot);
  int row_at[kSlab / 16];  // in a slab, of the lane's pieces
#pragma unroll
  for (int step = 0; step < kSlab / 16; ++step)
    row_at[step] = piece_of(row + lane % 16, step * 2 + lane / 16);
  const int line_at =
      S::kM * S::kRowWords + place.column * S::kLineWords + column + place.row;
  const auto depth = static_cast<int>(p.g.k);
  int now = 0;
  for (int k = 0; k < depth; k += kSlab) {
    copy_async_wait<kStages - 2>();
    __syncthreads();  // the slab is complete, and no thread still reads the one before it
    fetch(k + (kStages - 1) * kSlab, now == 0 ? kStages - 1 : now - 1);
    const std::uint32_t* const slab = shared + now * S::kStageWords;
#pragma unroll
    for (int step = 0; step < kSlab / 16; ++step) {
      if (k + step * 16 >= depth) break;  // the same number of products as the few-rows form
      std::uint32_t x[S::F][4], y[S::N][2];
#pragma unroll
      for (int f = 0; f < S::F; ++f)
        load_matrices<false>(x[f], slab + row_at[step] + f * 16 * kPairs);
#pragma unroll
      for (int j = 0; j < S::N; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          y[j][half] = slab[line_at + (step * 8 + half * 4) * S::kLineWords + j * 8];
#pragma unroll
      for (int j = 0; j < S::N; ++j)
#pragma unroll
        for (int f = 0; f < S::F; ++f)
          mma_bf16(sum[f][j], x[f], y[j]);
    }
    now = now + 1 == kStages ? 0 : now + 1;
  }
#pragma unroll
  for (int f = 0; f < S::F; ++f)
#pragma unroll
    for (int j = 0; j < S::N; ++j)
      end_fragments<1>(p, place, m + row + f * 16, n + column + j * 8, &sum[f][j]);
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
