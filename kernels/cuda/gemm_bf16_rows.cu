// Products of bfloat16 with few rows. Bound by reading the panels, each once. A warp has a panel
// and 16 F rows; the warps of a block share the rows. Stages of k are copied into shared memory
// while earlier ones are multiplied. Rows come rounded; up to kRowsAsTheyAre are in shared memory
// as f32 and are rounded when read.
#include "kernels/cuda/gemm_bf16.cuh"
#include "kernels/cuda/gemm_stages.cuh"
#include "kernels/cuda/launch.cuh"

#include <type_traits>

namespace troupe::kernels::cuda {
namespace {

constexpr int kDepth = kStageDepth;
constexpr int kLines = kDepth / 2;
constexpr int kWords = kLines * static_cast<int>(kPanel);  // words of a panel per stage
constexpr int kPanelsMost = 8;
// Stages with more rows have more bytes.
template <int F>
constexpr int kStages = F == 1 ? 5 : 3;
// Words of a row per stage, padded so that eight rows (pairs of four, in f32) lie in different
// banks.
template <bool kRounded>
constexpr int kRowWords = kRounded ? kDepth / 2 + 4 : kDepth + 8;

// The index of a column's word. A line that would share banks with the line two before it has its
// halves swapped.
__device__ int word_of(int line, int column) {
  return line * static_cast<int>(kPanel) + (column ^ (line >> 1 & 1) * 8);
}

// Starts copying numbers [k, k + kDepth) of rounded rows, as far as they go.
__device__ void fetch_rounded(
    const GemmPart& p, const RoundedRows& a, std::int64_t k, int me, std::uint32_t* to) {
  constexpr int kPieces = kDepth / 8, kTogether = kCopyThreads / kPieces;
  const int rows = static_cast<int>(p.rows()), piece = me % kPieces;
  if (k + piece * 8 >= a.ld) return;
  const std::uint16_t* const from = a.data + k + piece * 8;
  for (int row = me / kPieces; row < rows; row += kTogether)
    copy_async(to + row * kRowWords<true> + piece * 4, from + row * a.ld);
}

// Starts the copies of stage `stage`; does nothing after the end of k.
template <bool kRounded>
__device__ void fetch(const GemmPart& p,
                      const RoundedRows& a,
                      int panels,
                      std::int64_t stage,
                      int me,
                      std::uint32_t* to) {
  const std::int64_t k = stage * kDepth;
  if (k < p.g.k) {
    if constexpr (kRounded)
      fetch_rounded(p, a, k, me, to);
    else
      fetch_rows<kRowWords<false>>(p, k, me, reinterpret_cast<float*>(to));
    // A copying thread's lines are sixteen apart, so all or none are swapped.
    static_assert(kCopyThreads / 4 % 4 == 0);
    auto* const lines = reinterpret_cast<unsigned char*>(to + p.rows() * kRowWords<kRounded> +
                                                         word_of(me / 4, me % 4 * 4));
    constexpr int kBytes = kWords * 4;
    const std::int64_t bytes = panel_bytes(PanelDtype::kBf16, p.g.k), at = stage * kBytes + me * 16;
    const std::int64_t first = p.panel_begin + std::int64_t{blockIdx.x} * panels;
    const auto* const from = static_cast<const unsigned char*>(p.g.b.data) + first * bytes + at;
    for (int i = 0; i < panels && first + i < p.panel_end; ++i)
      fetch_lines<kBytes>(from + i * bytes, bytes - at, lines + i * kBytes);
  }
  copy_async_commit();
}

// Where a lane finds its words of the rows' fragments in a stage. A missing row reads the last one;
// rows as they are are at most eight, so the second half of their only fragment is zero.
template <int F, bool kRounded>
class RowPlaces {
 public:
  __device__ RowPlaces(const FragmentPlace& place, int rows) : column_(place.column * 2) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int f = 0; f < F; ++f) {
      const int wanted = kRounded ? f * 16 + lane % 16 : place.row;
      at_[f] = (wanted < rows ? wanted : rows - 1) * kRowWords<kRounded> +
               (kRounded ? lane / 16 * 4 : column_);
    }
  }
  // k steps [k, k + 16) of a stage that has `count`; kWhole: it has them all.
  template <bool kWhole>
  __device__ void load(
      std::uint32_t (&x)[4], const std::uint32_t* a, int f, int k, int count) const {
    if constexpr (kRounded) {
      load_matrices<false>(x, a + at_[f] + k / 2);
    } else {
      x[1] = x[3] = 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float2 pair = *reinterpret_cast<const float2*>(a + at_[f] + k + i * 8);
        const int at = k + i * 8 + column_;
        if (!kWhole && at >= count) pair.x = 0.0f;  // nothing was copied here
        if (!kWhole && at + 1 >= count) pair.y = 0.0f;
        x[i * 2] = rounded_pair(pair.x, pair.y);
      }
    }
  }

 private:
  const int column_;
  int at_[F];
};

template <int F, bool kRounded>
__global__ void __launch_bounds__(32 * kPanelsMost + kCopyThreads)
    few_rows_kernel(GemmPart p, RoundedRows rounded, int panels) {
  constexpr int kAhead = kStages<F> - 1;
  const int rows = static_cast<int>(p.rows());
  auto* const shared = reinterpret_cast<std::uint32_t*>(dynamic_shared());
  const int stage_words = rows * kRowWords<kRounded> + panels * kWords;
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
      fetch<kRounded>(p, rounded, panels, stage, copier, shared + stage * stage_words);
    for (std::int64_t stage = 0; stage < stages; ++stage, next()) {
      copy_async_wait<kAhead - 1>();
      all_meet(blockDim.x);  // this stage is complete, and all threads have read the previous one
      fetch<kRounded>(p, rounded, panels, stage + kAhead, copier, shared + free * stage_words);
    }
    return;
  }
  const FragmentPlace place;
  const std::int64_t n = (p.panel_begin + std::int64_t{blockIdx.x} * panels + panel) * kPanel;
  const RowPlaces<F, kRounded> places(place, rows);
  const int first_word = word_of(place.column, place.row * 2);
  float sum[F][2][4];
#pragma unroll
  for (int f = 0; f < F; ++f)
    start_fragments<2>(p, place, p.m_begin + f * 16, n, sum[f]);
  for (std::int64_t stage = 0; stage < stages; ++stage, next()) {
    all_meet(blockDim.x);
    const std::uint32_t* const a = shared + slot * stage_words;
    const std::uint32_t* const b = a + rows * kRowWords<kRounded> + panel * kWords;
    const std::int64_t left = p.g.k - stage * kDepth;
    const int count = left < kDepth ? static_cast<int>(left) : kDepth;
    const auto multiply = [&](int k, auto whole) {
      // Lines 4 and 8 further on have their halves swapped as this one has.
      const std::uint32_t* const line = b + first_word + k / 2 * static_cast<int>(kPanel);
      const uint2 low = *reinterpret_cast<const uint2*>(line);
      const uint2 high = *reinterpret_cast<const uint2*>(line + 4 * kPanel);
      const std::uint32_t y[2][2] = {{low.x, high.x}, {low.y, high.y}};
#pragma unroll
      for (int f = 0; f < F; ++f) {
        std::uint32_t x[4];
        places.template load<decltype(whole)::value>(x, a, f, k, count);
        mma_bf16(sum[f][0], x, y[0]);
        mma_bf16(sum[f][1], x, y[1]);
      }
    };
    if (count == kDepth) {
#pragma unroll
      for (int k = 0; k < kDepth; k += 16)
        multiply(k, std::true_type());
    } else {
#pragma unroll 1
      for (int k = 0; k < count; k += 16)
        multiply(k, std::false_type());
    }
  }
#pragma unroll
  for (int f = 0; f < F; ++f)
    end_fragments<2>(p, place, p.m_begin + f * 16, n, sum[f]);
}

// More panels in a block share reads of the rows, if that still leaves work for all
// multiprocessors.
template <int F, bool kRounded>
void start_rows(const GemmPart& p, const RoundedRows& a) {
  const auto bytes = [&](int panels) {
    return static_cast<std::size_t>(p.rows() * kRowWords<kRounded> + panels * kWords) * 4 *
           kStages<F>;
  };
  const int most = p.rows() <= 4 ? 1 : F == 1 ? 2 : F == 2 ? 4 : kPanelsMost;
  int panels = 1;
  while (panels < most && p.panels() >= kMultiprocessors * 3 / 2 * panels &&
         bytes(2 * panels) <= current_device().shared_bytes)
    panels *= 2;
  launch("gemm_bf16_few_rows", few_rows_kernel<F, kRounded>, blocks_for(p.panels(), panels),
         static_cast<unsigned>(32 * panels + kCopyThreads), bytes(panels), p, a, panels);
}

}  // namespace

void gemm_bf16_few_rows(const GemmPart& p) {
  start_rows<1, false>(p, {});
}

void gemm_bf16_few_rows(const GemmPart& p, const RoundedRows& a) {
  constexpr std::int64_t kMost = 64;
  const std::int64_t rows = p.rows(), parts = (rows + kMost - 1) / kMost;
  for (std::int64_t i = 0; i < parts; ++i) {
    GemmPart part = p;
    part.m_begin = p.m_begin + rows * i / parts;
    part.m_end = p.m_begin + rows * (i + 1) / parts;
    const RoundedRows own{a.data + (part.m_begin - p.m_begin) * a.ld, a.ld};
    if (part.rows() <= 16)
      start_rows<1, true>(part, own);
    else if (part.rows() <= 32)
      start_rows<2, true>(part, own);
    else
      start_rows<4, true>(part, own);
  }
}

}  // namespace troupe::kernels::cuda
