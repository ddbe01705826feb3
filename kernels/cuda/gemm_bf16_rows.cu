// Products of bfloat16 with few rows. Bound by reading the panels, each once. A warp has a panel
// and 16 F rows. Stages of k are copied into shared memory while earlier ones are multiplied. Rows
// are in shared memory as f32 and are rounded when read.
#include "kernels/cuda/gemm_bf16.cuh"
#include "kernels/cuda/gemm_stages.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kDepth = kStageDepth;
constexpr int kRowFloats = kDepth + 8;  // so that pairs of four rows lie in different banks
constexpr int kLines = kDepth / 2;
constexpr int kWords = kLines * static_cast<int>(kPanel);  // words of a panel per stage
// Stages with more rows have more bytes.
template <int F>
constexpr int kStages = F == 4 ? 3 : 5;

// The index of a column's word. A line that would share banks with the line two before it has its
// halves swapped.
__device__ int word_of(int line, int column) {
  return line * static_cast<int>(kPanel) + (column ^ (line >> 1 & 1) * 8);
}

// Starts the copies of stage `stage`; does nothing after the end of k.
__device__ void fetch(const GemmPart& p, int panels, std::int64_t stage, int me, float* to) {
  const std::int64_t k = stage * kDepth;
  if (k < p.g.k) {
    fetch_rows<kRowFloats>(p, k, me, to);
    // A copying thread's lines are sixteen apart, so all or none are swapped.
    static_assert(kCopyThreads / 4 % 4 == 0);
    auto* const lines = reinterpret_cast<unsigned char*>(to + (p.m_end - p.m_begin) * kRowFloats +
                                                         word_of(me / 4, me % 4 * 4));
    constexpr int kBytes = kWords * 4;
    const std::int64_t bytes = panel_bytes(PanelDtype::kBf16, p.g.k), at = stage * kBytes + me * 16;
    const std::int64_t first = p.panel_begin + std::int64_t{blockIdx.x} * panels;
    const auto* const from = static_cast<const unsigned char*>(p.g.b.data) + first * bytes + at;
    fetch_lines<kBytes>(from, bytes - at, lines);
    if (panels == 2 && first + 1 < p.panel_end)
      fetch_lines<kBytes>(from + bytes, bytes - at, lines + kBytes);
  }
  copy_async_commit();
}

template <int F>
__global__ void __launch_bounds__(64 + kCopyThreads) few_rows_kernel(GemmPart p, int panels) {
  constexpr int kAhead = kStages<F> - 1;
  const int rows = static_cast<int>(p.m_end - p.m_begin);
  auto* const shared = reinterpret_cast<float*>(dynamic_shared());
  const int stage_words = rows * kRowFloats + panels * kWords;
  const std::int64_t stages = (p.g.k + kDepth - 1) / kDepth;
  const int panel = static_cast<int>(threadIdx.x) / 32;
  int slot = 0, free = kAhead;  // slots of the current stage and of the one kAhead later
  const auto next = [&] {
    slot = slot == kAhead ? 0 : slot + 1;
    free = free == kAhead ? 0 : free + 1;
  };
  if (panel >= panels) {
    const int copier = static_cast<int>(threadIdx.x) - panels * 32;
    for (int stage = 0; stage < kAhead; ++stage)
      fetch(p, panels, stage, copier, shared + stage * stage_words);
    for (std::int64_t stage = 0; stage < stages; ++stage, next()) {
      copy_async_wait<kAhead - 1>();
      __syncthreads();  // this stage is complete, and all threads have read the previous one
      fetch(p, panels, stage + kAhead, copier, shared + free * stage_words);
    }
    return;
  }
  const FragmentPlace place;
  const std::int64_t n = (p.panel_begin + std::int64_t{blockIdx.x} * panels + panel) * kPanel;
  float sum[F][2][4];
  int row[F][2];  // offsets of the lane's rows; a missing row reads the last one
#pragma unroll
  for (int f = 0; f < F; ++f) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = f * 16 + half * 8 + place.row;
      row[f][half] = (at < rows ? at : rows - 1) * kRowFloats + place.column * 2;
      start_fragment(p, place, p.m_begin + f * 16, n + half * 8, sum[f][half]);
    }
  }
  for (std::int64_t stage = 0; stage < stages; ++stage, next()) {
    __syncthreads();
    const float* const a = shared + slot * stage_words;
    const auto* const b =
        reinterpret_cast<const std::uint32_t*>(a + rows * kRowFloats) + panel * kWords;
    const std::int64_t left = p.g.k - stage * kDepth;
    const int count = left < kDepth ? static_cast<int>(left) : kDepth;
#pragma unroll 4
    for (int k = 0; k < count; k += 16) {
      std::uint32_t y[2][2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        y[half][0] = b[word_of(k / 2 + place.column, half * 8 + place.row)];
        y[half][1] = b[word_of(k / 2 + place.column + 4, half * 8 + place.row)];
      }
#pragma unroll
      for (int f = 0; f < F; ++f) {
        std::uint32_t x[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int at = k + i / 2 * 8 + place.column * 2;
          float2 pair = *reinterpret_cast<const float2*>(a + row[f][i % 2] + k + i / 2 * 8);
          if (at >= count) pair.x = 0.0f;  // nothing was copied here
          if (at + 1 >= count) pair.y = 0.0f;
          x[i] = rounded_pair(pair.x, pair.y);
        }
        mma_bf16(sum[f][0], x, y[0]);
        mma_bf16(sum[f][1], x, y[1]);
      }
    }
  }
#pragma unroll
  for (int f = 0; f < F; ++f)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      end_fragment(p, place, p.m_begin + f * 16, n + half * 8, sum[f][half]);
}

template <int F>
void start(const GemmPart& p) {
  // Two panels share reads of the rows if that still leaves work for all multiprocessors.
  const int panels = p.rows() > 4 && p.panels() >= kMultiprocessors * 3 / 2 ? 2 : 1;
  const std::size_t words = static_cast<std::size_t>(p.rows() * kRowFloats + panels * kWords);
  launch("gemm_bf16_few_rows", few_rows_kernel<F>, blocks_for(p.panels(), panels),
         static_cast<unsigned>(32 * panels + kCopyThreads), words * sizeof(float) * kStages<F>, p,
         panels);
}

}  // namespace

// Splits the rows like gemm_few_rows.
void gemm_bf16_few_rows(const GemmPart& p) {
  const std::int64_t rows = p.rows(), most = roomy() ? 64 : 16, parts = (rows + most - 1) / most;
  for (std::int64_t i = 0; i < parts; ++i) {
    GemmPart part = p;
    part.m_begin = p.m_begin + rows * i / parts;
    part.m_end = p.m_begin + rows * (i + 1) / parts;
    if (part.rows() <= 16)
      start<1>(part);
    else if (part.rows() <= 32)
      start<2>(part);
    else
      start<4>(part);
  }
}

}  // namespace troupe::kernels::cuda
