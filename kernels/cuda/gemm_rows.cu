// Products of few rows with packed panels: bound by reading the panels, each once. A block has one
// or two panels and all rows; stages of k come into shared memory while earlier
// ones are multiplied. A thread has one column and R rows: R chains over the whole of k. With one
// row the latency of the multiply-add (4 cycles for each k) is as long as reading 16 columns of
// bfloat16 in f32 takes, so no more columns are given to a thread than its rows allow.
#include "kernels/cuda/gemm_stages.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/panels.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kDepth = kStageDepth;
constexpr int kRowFloats = kDepth + 4;  // of A in a stage: rows begin in different banks
constexpr int kColumns = static_cast<int>(kPanel);

template <PanelDtype kType>
constexpr int kLines = kDepth / static_cast<int>(line_depth(kType));
template <PanelDtype kType>
constexpr int kPanelBytes = kLines<kType>* static_cast<int>(kLineBytes);  // in a stage
// Small lines of k need more stages for as many bytes under way.
template <PanelDtype kType>
constexpr int kStages = kType == PanelDtype::kF32    ? 4
                        : kType == PanelDtype::kInt8 ? 8
                                                     : 6;

struct Cut {
  int panels;          // of a block
  int warps_of_panel;  // each has 2 R rows
  int rows;            // of A in a stage: those of all warps
};

template <PanelDtype kType>
__host__ __device__ constexpr int stage_bytes(const Cut& cut) {
  return cut.rows * kRowFloats * 4 + cut.panels * kPanelBytes<kType>;
}

// Starts the copies of stage `stage` into `to`; nothing where k has ended.
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

// Four numbers of a column from depth `k` on (a multiple of 4) of a stage's lines.
template <PanelDtype kType>
__device__ void read_four(const unsigned char* panel, int k, int column, float (&b)[4]) {
  if constexpr (kType == PanelDtype::kF32) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      b[i] = reinterpret_cast<const float*>(panel)[(k + i) * kColumns + column];
  } else if constexpr (kType == PanelDtype::kInt8) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      b[i] = static_cast<float>(
          reinterpret_cast<const signed char*>(panel)[(k + i) * kColumns + column]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const std::uint32_t pair =
          reinterpret_cast<const std::uint32_t*>(panel)[(k + i) / 2 * kColumns + column];
      b[i] = low_bf16(pair);
      b[i + 1] = high_bf16(pair);
    }
  }
}

// What a thread multiplies at a time: enough of k that its multiply-adds take as long as shared
// memory takes to answer, so the next group is read before this one is multiplied.
template <PanelDtype kType, int R>
struct Group {
  static constexpr int kFours = R == 1 ? 4 : R <= 4 ? 2 : 1;
  float b[kFours][4];
  float4 a[kFours][R];

  __device__ void read(const float* rows, const unsigned char* panel, int column, int group) {
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const int k = (group * kFours + i) * 4;
      read_four<kType>(panel, k, column, b[i]);
#pragma unroll
      for (int r = 0; r < R; ++r)
        a[i][r] = *reinterpret_cast<const float4*>(rows + r * kRowFloats + k);
    }
  }
  __device__ void add_to(float (&sum)[R]) const {
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
#pragma unroll
      for (int r = 0; r < R; ++r)
        sum[r] = __fmaf_rn(a[i][r].x, b[i][0], sum[r]);
#pragma unroll
      for (int r = 0; r < R; ++r)
        sum[r] = __fmaf_rn(a[i][r].y, b[i][1], sum[r]);
#pragma unroll
      for (int r = 0; r < R; ++r)
        sum[r] = __fmaf_rn(a[i][r].z, b[i][2], sum[r]);
#pragma unroll
      for (int r = 0; r < R; ++r)
        sum[r] = __fmaf_rn(a[i][r].w, b[i][3], sum[r]);
    }
  }
};

// The chains go on by a whole stage.
template <PanelDtype kType, int R>
__device__ void multiply(const float* a, const unsigned char* panel, int column, float (&sum)[R]) {
  using Step = Group<kType, R>;
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

// By the `count` of k that the last stage has.
template <PanelDtype kType, int R>
__device__ void multiply_some(
    const float* a, const unsigned char* panel, int column, int count, float (&sum)[R]) {
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
    float b[4];
    read_four<kType>(panel, k / 4 * 4, column, b);
    const float y = k % 4 == 0 ? b[0] : k % 4 == 1 ? b[1] : k % 4 == 2 ? b[2] : b[3];
#pragma unroll
    for (int r = 0; r < R; ++r)
      sum[r] = __fmaf_rn(a[r * kRowFloats + k], y, sum[r]);
  }
}

template <PanelDtype kType, int R>
__global__ void __launch_bounds__(128 + kCopyThreads, 2) few_rows_kernel(GemmPart p, Cut cut) {
  constexpr int kAhead = kStages<kType> - 1;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int copier = static_cast<int>(threadIdx.x) - cut.panels * cut.warps_of_panel * 32;
  unsigned char* const shared = dynamic_shared();
  const int bytes = stage_bytes<kType>(cut);
  const std::int64_t stages = (p.g.k + kDepth - 1) / kDepth;
  int slot = 0, free = kAhead;  // where a stage and the one kAhead behind it lie
  const auto next = [&] {
    slot = slot == kAhead ? 0 : slot + 1;
    free = free == kAhead ? 0 : free + 1;
  };
  if (copier >= 0) {
    for (int stage = 0; stage < kAhead; ++stage)
      fetch<kType>(p, cut, stage, copier, shared + stage * bytes);
    for (std::int64_t stage = 0; stage < stages; ++stage, next()) {
      copy_async_wait<kAhead - 1>();
      __syncthreads();  // this stage is there for all, and all have read the one before
      fetch<kType>(p, cut, stage + kAhead, copier, shared + free * bytes);
    }
    return;
  }
  const int panel = warp / cut.warps_of_panel;
  const int first = (warp % cut.warps_of_panel * 2 + lane / kColumns) * R;  // row of the thread
  const int column = lane % kColumns;
  const std::int64_t n =
      (p.panel_begin + std::int64_t{blockIdx.x} * cut.panels + panel) * kPanel + column;
  const int rows = static_cast<int>(p.m_end - p.m_begin) - first;  // those that are there
  const bool idle = rows <= 0 || n >= p.panel_end * kPanel || n >= p.g.n;
  float sum[R];
#pragma unroll
  for (int r = 0; r < R; ++r)
    sum[r] = !idle && r < rows ? chain_start(p.g, p.m_begin + first + r, n) : 0.0f;
  for (std::int64_t stage = 0; stage < stages; ++stage, next()) {
    __syncthreads();
    const unsigned char* const at = shared + slot * bytes;
    const float* const a = reinterpret_cast<const float*>(at) + first * kRowFloats;
    const unsigned char* const b = at + cut.rows * kRowFloats * 4 + panel * kPanelBytes<kType>;
    const std::int64_t left = p.g.k - stage * kDepth;
    if (idle) continue;
    if (left >= kDepth)
      multiply<kType, R>(a, b, column, sum);
    else
      multiply_some<kType, R>(a, b, column, static_cast<int>(left), sum);
  }
  if (idle) return;
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (r < rows) chain_end(p.g, p.m_begin + first + r, n, sum[r]);
}

template <PanelDtype kType, int R>
void start(const GemmPart& p) {
  const int warps = static_cast<int>((p.rows() + 2 * R - 1) / (2 * R));
  // Two panels share the reading of the rows, where that leaves work for all multiprocessors.
  const int panels = p.rows() > 4 && p.panels() >= kMultiprocessors * 3 / 2 ? 2 : 1;
  const Cut cut{panels, warps, warps * 2 * R};
  launch("gemm_few_rows", few_rows_kernel<kType, R>, blocks_for(p.panels(), panels),
         static_cast<unsigned>(32 * warps * panels + kCopyThreads),
         static_cast<std::size_t>(stage_bytes<kType>(cut)) * kStages<kType>, p, cut);
}

template <PanelDtype kType>
void start_for(const GemmPart& p) {
  if (p.rows() <= 2)
    start<kType, 1>(p);
  else if (p.rows() <= 8)
    start<kType, 2>(p);
  else if (p.rows() <= 16)
    start<kType, 4>(p);
  else
    start<kType, 8>(p);
}

}  // namespace

void gemm_few_rows(const GemmPart& p) {
  switch (p.g.b.dtype) {
    case PanelDtype::kBf16:
      return start_for<PanelDtype::kBf16>(p);
    case PanelDtype::kInt8:
      return start_for<PanelDtype::kInt8>(p);
    default:
      return start_for<PanelDtype::kF32>(p);
  }
}

}  // namespace troupe::kernels::cuda
