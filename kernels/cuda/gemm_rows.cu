// Products of few rows with packed panels. The limit is reading the panels, each once. A thread
// block computes all rows of one or two panels; stages of k are copied into shared memory while
// earlier ones are multiplied. A thread computes one or two columns of some rows, each output as
// one sequential sum (a chain) over all of k. A multiply-add waits for the one before it in its
// chain, 4 cycles. With one row that takes as long as reading 16 columns of bfloat16, so few rows
// get one column per thread, which makes more threads; more rows get two, which saves reads of
// shared memory.
#include "kernels/cuda/gemm_stages.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/panels.cuh"

#include <type_traits>

namespace troupe::kernels::cuda {
namespace {

constexpr int kDepth = kStageDepth;
constexpr int kRowFloats = kDepth + 4;  // of A in a stage; rows start in different banks
constexpr int kColumns = static_cast<int>(kPanel);

template <PanelDtype kType>
constexpr int kLines = kDepth / static_cast<int>(line_depth(kType));
template <PanelDtype kType>
constexpr int kPanelBytes = kLines<kType>* static_cast<int>(kLineBytes);  // per stage
// Smaller dtypes need more stages to keep the same number of bytes in flight.
template <PanelDtype kType>
constexpr int kStages = kType == PanelDtype::kF32    ? 4
                        : kType == PanelDtype::kInt8 ? 7
                                                     : 6;

struct Cut {
  int panels;  // per block
  int warps_of_panel;
  int rows;  // of A per stage, for all warps
};

template <PanelDtype kType>
__host__ __device__ constexpr int stage_bytes(const Cut& cut) {
  return cut.rows * kRowFloats * 4 + cut.panels * kPanelBytes<kType>;
}

// Starts the copies of stage `stage` into `to`; does nothing after the end of k.
template <PanelDtype kType>
__device__ void fetch(
    const GemmPart& p, const Cut& cut, std::int64_t stage, int me, unsigned char* to) {
  if (stage * kDepth < p.g.k) {
    fetch_rows<kRowFloats>(p, stage * kDepth, me, reinterpret_cast<float*>(to));
    const std::int64_t bytes = panel_bytes(kType, p.g.k);
    const std::int64_t at = stage * kPanelBytes<kType> + me * 16;
    to += cut.rows * kRowFloats * 4 + me * 16;
    const std::int64_t first = p.panel_begin + std::int64_t{blockIdx.x} * cut.panels;
    const auto* const from = static_cast<const unsigned char*>(p.g.b.data) + first * bytes + at;
    fetch_lines<kPanelBytes<kType>>(from, bytes - at, to);
    if (cut.panels == 2 && first + 1 < p.panel_end)
      fetch_lines<kPanelBytes<kType>>(from + bytes, bytes - at, to + kPanelBytes<kType>);
  }
  copy_async_commit();
}

// Reads four numbers of each of C columns, from depth `k` (a multiple of 4) of a stage's lines.
template <PanelDtype kType, int C>
__device__ void read_four(const unsigned char* panel, int k, int column, float (&b)[4][C]) {
  using Word = std::conditional_t<C == 2, uint2, std::uint32_t>;
  constexpr int kPerWord = kType == PanelDtype::kF32 ? 1 : 2;  // steps of k
  if constexpr (kType == PanelDtype::kInt8) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int c = 0; c < C; ++c)
        b[i][c] = static_cast<float>(
            reinterpret_cast<const signed char*>(panel)[(k + i) * kColumns + column + c]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i += kPerWord) {
      const Word word = *reinterpret_cast<const Word*>(
          panel + ((k + i) / kPerWord * kColumns + column) * static_cast<int>(sizeof(float)));
      std::uint32_t bits[C];
      if constexpr (C == 2) {
        bits[0] = word.x;
        bits[1] = word.y;
      } else {
        bits[0] = word;
      }
#pragma unroll
      for (int c = 0; c < C; ++c) {
        b[i][c] = kPerWord == 1 ? __uint_as_float(bits[c]) : low_bf16(bits[c]);
        if constexpr (kPerWord == 2) b[i + 1][c] = high_bf16(bits[c]);
      }
    }
  }
}

// A thread's outputs: C adjacent columns of R rows. The rows of a warp's threads are interleaved,
// so that their numbers lie in different banks.
template <int C, int R>
struct Form {
  static constexpr int kC = C, kR = R;
  static constexpr int kGroups = 2 * C;      // groups of threads with the same rows, per warp
  static constexpr int kRows = kGroups * R;  // rows per warp
  static constexpr int kRowStep = kGroups * kRowFloats;
};

// What a thread multiplies at a time. The multiply-adds of a group take as long as the latency of
// shared memory, and the next group is read before this one is multiplied.
template <PanelDtype kType, class F>
struct Group {
  static constexpr int kFours = F::kC * F::kR == 1 ? 4 : F::kC * F::kR <= 4 ? 2 : 1;
  float b[kFours][4][F::kC];
  float4 a[kFours][F::kR];

  __device__ void read(const float* rows, const unsigned char* panel, int column, int group) {
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const int k = (group * kFours + i) * 4;
      read_four<kType>(panel, k, column, b[i]);
#pragma unroll
      for (int r = 0; r < F::kR; ++r)
        a[i][r] = *reinterpret_cast<const float4*>(rows + r * F::kRowStep + k);
    }
  }
  __device__ void add_to(float (&sum)[F::kR][F::kC]) const {
#pragma unroll
    for (int i = 0; i < kFours; ++i)
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int r = 0; r < F::kR; ++r)
#pragma unroll
          for (int c = 0; c < F::kC; ++c)
            sum[r][c] = __fmaf_rn(of(a[i][r], k), b[i][k][c], sum[r][c]);
  }
  __device__ static float of(const float4& x, int k) {
    return k == 0 ? x.x : k == 1 ? x.y : k == 2 ? x.z : x.w;
  }
};

// Continues the chains by a whole stage.
template <PanelDtype kType, class F>
__device__ void multiply(const float* a,
                         const unsigned char* panel,
                         int column,
                         float (&sum)[F::kR][F::kC]) {
  using Step = Group<kType, F>;
  constexpr int kGroups = kDepth / (4 * Step::kFours);
  static_assert(kGroups % 2 == 0);
  Step even, odd;
  even.read(a, panel, column, 0);
#pragma unroll 2
  for (int group = 0; group < kGroups; group += 2) {
    odd.read(a, panel, column, group + 1);
    even.add_to(sum);
    if (group + 2 < kGroups) even.read(a, panel, column, group + 2);
    odd.add_to(sum);
  }
}

// Continues the chains by the `count` steps of k that the last stage has.
template <PanelDtype kType, class F>
__device__ void multiply_some(
    const float* a, const unsigned char* panel, int column, int count, float (&sum)[F::kR][F::kC]) {
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
    float b[4][F::kC];
    read_four<kType>(panel, k / 4 * 4, column, b);
#pragma unroll
    for (int c = 0; c < F::kC; ++c) {
      const float y = k % 4 == 0 ? b[0][c] : k % 4 == 1 ? b[1][c] : k % 4 == 2 ? b[2][c] : b[3][c];
#pragma unroll
      for (int r = 0; r < F::kR; ++r)
        sum[r][c] = __fmaf_rn(a[r * F::kRowStep + k], y, sum[r][c]);
    }
  }
}

template <PanelDtype kType, class F>
__global__ void __launch_bounds__(128 + kCopyThreads, 2) few_rows_kernel(GemmPart p, Cut cut) {
  constexpr int kAhead = kStages<kType> - 1;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int copier = static_cast<int>(threadIdx.x) - cut.panels * cut.warps_of_panel * 32;
  unsigned char* const shared = dynamic_shared();
  const int bytes = stage_bytes<kType>(cut);
  const std::int64_t stages = (p.g.k + kDepth - 1) / kDepth;
  int slot = 0, free = kAhead;  // slots of the current stage and of the one kAhead later
  const auto next = [&] {
    slot = slot == kAhead ? 0 : slot + 1;
    free = free == kAhead ? 0 : free + 1;
  };
  if (copier >= 0) {
    for (int stage = 0; stage < kAhead; ++stage)
      fetch<kType>(p, cut, stage, copier, shared + stage * bytes);
    for (std::int64_t stage = 0; stage < stages; ++stage, next()) {
      copy_async_wait<kAhead - 1>();
      all_meet(blockDim.x);  // this stage is complete, and all threads have read the previous one
      fetch<kType>(p, cut, stage + kAhead, copier, shared + free * bytes);
    }
    return;
  }
  constexpr int kThreadsOfRow = kColumns / F::kC;
  const int panel = warp / cut.warps_of_panel;
  const int first = warp % cut.warps_of_panel * F::kRows + lane / kThreadsOfRow;
  const int column = lane % kThreadsOfRow * F::kC;
  const std::int64_t n =
      (p.panel_begin + std::int64_t{blockIdx.x} * cut.panels + panel) * kPanel + column;
  const std::int64_t n_end = p.column_end();
  const int rows = static_cast<int>(p.m_end - p.m_begin);
  const bool idle = first >= rows || n >= n_end;
  const auto there = [&](int r, int c) {
    return !idle && first + r * F::kGroups < rows && n + c < n_end;
  };
  float sum[F::kR][F::kC];
#pragma unroll
  for (int r = 0; r < F::kR; ++r)
#pragma unroll
    for (int c = 0; c < F::kC; ++c)
      sum[r][c] = there(r, c) ? chain_start(p.g, p.m_begin + first + r * F::kGroups, n + c) : 0.0f;
  for (std::int64_t stage = 0; stage < stages; ++stage, next()) {
    all_meet(blockDim.x);
    const unsigned char* const at = shared + slot * bytes;
    const float* const a = reinterpret_cast<const float*>(at) + first * kRowFloats;
    const unsigned char* const b = at + cut.rows * kRowFloats * 4 + panel * kPanelBytes<kType>;
    const std::int64_t left = p.g.k - stage * kDepth;
    if (idle) continue;
    if (left >= kDepth)
      multiply<kType, F>(a, b, column, sum);
    else
      multiply_some<kType, F>(a, b, column, static_cast<int>(left), sum);
  }
#pragma unroll
  for (int r = 0; r < F::kR; ++r)
#pragma unroll
    for (int c = 0; c < F::kC; ++c)
      if (there(r, c)) chain_end(p.g, p.m_begin + first + r * F::kGroups, n + c, sum[r][c]);
}

template <PanelDtype kType, class F>
void start(const GemmPart& p) {
  const int warps = static_cast<int>((p.rows() + F::kRows - 1) / F::kRows);
  // Two panels share reads of the rows if that still leaves work for all multiprocessors.
  const int panels = p.rows() > 4 && p.panels() >= kMultiprocessors * 3 / 2 ? 2 : 1;
  const Cut cut{panels, warps, warps * F::kRows};
  launch("gemm_few_rows", few_rows_kernel<kType, F>, blocks_for(p.panels(), panels),
         static_cast<unsigned>(32 * warps * panels + kCopyThreads),
         static_cast<std::size_t>(stage_bytes<kType>(cut)) * kStages<kType>, p, cut);
}

template <PanelDtype kType>
void start_for(const GemmPart& p) {
  if (p.rows() <= 2)
    start<kType, Form<1, 1>>(p);
  else if (p.rows() <= 8)
    start<kType, Form<1, 2>>(p);
  else if (p.rows() <= 16)
    start<kType, Form<2, 2>>(p);
  else
    start<kType, Form<2, 4>>(p);
}

void start_any(const GemmPart& p) {
  switch (p.g.b.dtype) {
    case PanelDtype::kBf16:
      return start_for<PanelDtype::kBf16>(p);
    case PanelDtype::kInt8:
      return start_for<PanelDtype::kInt8>(p);
    default:
      return start_for<PanelDtype::kF32>(p);
  }
}

}  // namespace

// More rows than a block takes are split into several products, one after another. The later ones
// read the panels mostly from the L2 cache.
void gemm_few_rows(const GemmPart& p) {
  const std::int64_t rows = p.rows(), most = roomy() ? 32 : 16, parts = (rows + most - 1) / most;
  for (std::int64_t i = 0; i < parts; ++i) {
    GemmPart part = p;
    part.m_begin = p.m_begin + rows * i / parts;
    part.m_end = p.m_begin + rows * (i + 1) / parts;
    start_any(part);
  }
}

}  // namespace troupe::kernels::cuda
