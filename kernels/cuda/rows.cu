// Row copies, sums of two rows, zeroing, scaling, and RMSNorm. In RMSNorm a team of 16 threads
// (lanes.cuh) sums one head of a row: alone where heads are short; a long row is first read into
// shared memory by a whole block, since a team alone would wait for each of its reads. The other
// kernels divide elements.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTeams = 8;  // teams per block of RMSNorm
constexpr int kScaled = 4;  // elements per thread of scale
// Rows from this length on are staged; longer ones than the other are not.
constexpr std::int64_t kStaged_min = 256, kStaged_max = kSharedAlways / sizeof(float) - 16;

__global__ void copy_kernel(CopyRows c, std::int64_t begin) {
  const std::int64_t i = begin + blockIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= c.columns) return;
  const std::int64_t from = c.from_row == nullptr ? i : c.from_row[i];
  const std::int64_t to = c.to_row == nullptr ? i : c.to_row[i];
  c.to[to * c.ldt + column] = c.from[from * c.ldf + column];
}

__global__ void add_kernel(AddRows a, std::int64_t row_begin) {
  const std::int64_t row = row_begin + blockIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (column >= a.columns) return;
  a.out[row * a.ldo + column] = a.a[row * a.lda + column] + a.b[row * a.ldb + column];
}

// A thread's elements are a block's width apart, so that several loads are in flight; y may be x.
__global__ void __launch_bounds__(kThreads)
    scale_kernel(const float* x, float by, float* y, Range elements) {
  const std::int64_t first =
      elements.begin + std::int64_t{blockIdx.x} * (kThreads * kScaled) + threadIdx.x;
  float value[kScaled];
#pragma unroll
  for (int j = 0; j < kScaled; ++j) {
    const std::int64_t i = first + j * kThreads;
    value[j] = i < elements.end ? x[i] : 0.0f;
  }
#pragma unroll
  for (int j = 0; j < kScaled; ++j) {
    const std::int64_t i = first + j * kThreads;
    if (i < elements.end) y[i] = by * value[j];
  }
}

// 1 / root mean square of a head of a row, in the order of the lanes. All threads of the warp call;
// those whose team has no head are `idle`.
__device__ float inverse_rms(const RmsNorm& n, const float* head, bool idle = false) {
  float squares = 0.0f;
  for (std::int64_t i = threadIdx.x % kLanes; !idle && i < n.d; i += kLanes)
    squares = __fmaf_rn(head[i], head[i], squares);
  const float mean = lanes_sum(squares) / static_cast<float>(n.d);
  return 1.0f / __fsqrt_rn(mean + n.eps);
}

// A team does one head of one row; x may be y.
__global__ void __launch_bounds__(kTeams* kLanes) rmsnorm_kernel(RmsNorm n, Range rows) {
  const int lane = threadIdx.x % kLanes;
  const std::int64_t item = std::int64_t{blockIdx.x} * kTeams + threadIdx.x / kLanes;
  const std::int64_t row = rows.begin + item / n.heads, head = item % n.heads;
  const bool idle = row >= rows.end;  // still takes part in the warp's shuffles
  const float* const in = n.x + row * n.ldx + head * n.d;
  const float r = inverse_rms(n, in, idle);
  if (idle) return;
  float* const out = n.y + row * n.ldy + head * n.d;
  for (std::int64_t i = lane; i < n.d; i += kLanes)
    out[i] = (in[i] * r) * n.weight[i];
  if (n.inv_rms != nullptr && lane == 0) n.inv_rms[head * n.ldi + row] = r;
}

// A block does one head of one row; x may be y.
__global__ void __launch_bounds__(kThreads)
    staged_rmsnorm_kernel(RmsNorm n, std::int64_t row_begin) {
  auto* const staged = reinterpret_cast<float*>(dynamic_shared());
  __shared__ float scale;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = row_begin + blockIdx.x / n.heads, head = blockIdx.x % n.heads;
  const float* const in = n.x + row * n.ldx + head * n.d;
  for (std::int64_t i = thread; i < n.d; i += kThreads)
    staged[i] = in[i];
  __syncthreads();
  if (thread < 32) {  // both teams of the first warp sum all of it
    const float r = inverse_rms(n, staged);
    if (thread == 0) scale = r;
    if (thread == 0 && n.inv_rms != nullptr) n.inv_rms[head * n.ldi + row] = r;
  }
  __syncthreads();
  float* const out = n.y + row * n.ldy + head * n.d;
  for (std::int64_t i = thread; i < n.d; i += kThreads)
    out[i] = (staged[i] * scale) * n.weight[i];
}

// Launches once for each part of the rows that fits a grid's second dimension.
template <class Operand>
void each_row(const char* name,
              void (*kernel)(Operand, std::int64_t),
              const Operand& operand,
              Range rows) {
  constexpr std::int64_t kRows_max = 65535;
  for (; !rows.empty(); rows.begin += kRows_max) {
    const std::int64_t count = rows.size() < kRows_max ? rows.size() : kRows_max;
    const dim3 grid(blocks_for(operand.columns, kThreads), static_cast<unsigned>(count));
    launch(name, kernel, grid, kThreads, 0, operand, rows.begin);
  }
}

}  // namespace

void copy_rows(const CopyRows& c, Range rows) {
  each_row("copy_rows", copy_kernel, c, rows);
}

void add_rows(const AddRows& a, Range rows) {
  each_row("add_rows", add_kernel, a, rows);
}

void zero(float* x, Range elements) {
  if (elements.empty()) return;
  check(
      cudaMemsetAsync(x + elements.begin, 0,
                      static_cast<std::size_t>(elements.size()) * sizeof(float), current_stream()),
      "zero");
}

void scale(const float* x, float by, float* y, Range elements) {
  if (elements.empty()) return;
  launch("scale", scale_kernel, blocks_for(elements.size(), kThreads * kScaled), kThreads, 0, x, by,
         y, elements);
}

void rmsnorm(const RmsNorm& n, Range rows) {
  if (n.d >= kStaged_min && n.d <= kStaged_max)
    launch("rmsnorm", staged_rmsnorm_kernel, blocks_for(rows.size() * n.heads, 1), kThreads,
           static_cast<std::size_t>(n.d) * sizeof(float), n, rows.begin);
  else
    launch("rmsnorm", rmsnorm_kernel, blocks_for(rows.size() * n.heads, kTeams), kTeams * kLanes, 0,
           n, rows);
}

}  // namespace troupe::kernels::cuda
