// Copies, sums of rows and RMSNorm. One team of 16 threads (lanes.cuh) has a row in RMSNorm; the
// others share out elements.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rows.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTeams = 8;  // rows of a block of RMSNorm

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

// A team has one head of one row; x may be y.
__global__ void __launch_bounds__(kTeams* kLanes)
    rmsnorm_kernel(NormHeads n, std::int64_t row_begin, std::int64_t row_end) {
  const int lane = threadIdx.x % kLanes;
  const std::int64_t item = std::int64_t{blockIdx.x} * kTeams + threadIdx.x / kLanes;
  const std::int64_t row = row_begin + item / n.heads, head = item % n.heads;
  const bool idle = row >= row_end;  // it still takes part in the warp's exchanges
  const float* const in = n.x + row * n.ldx + head * n.head_dim;
  float squares = 0.0f;
  for (std::int64_t i = lane; !idle && i < n.head_dim; i += kLanes)
    squares = __fmaf_rn(in[i], in[i], squares);
  const float mean = lanes_sum(squares) / static_cast<float>(n.head_dim);
  const float r = 1.0f / __fsqrt_rn(mean + n.eps);
  if (idle) return;
  float* const out = n.y + row * n.ldy + head * n.head_dim;
  for (std::int64_t i = lane; i < n.head_dim; i += kLanes)
    out[i] = (in[i] * r) * n.weight[i];
  if (n.inv_rms != nullptr && lane == 0) n.inv_rms[head * n.ldi + row] = r;
}

// Rows of a launch: the grid's second dimension ends at 65535.
constexpr std::int64_t kRows_max = 65535;

}  // namespace

void copy_rows(const CopyRows& c, std::int64_t begin, std::int64_t end) {
  for (; begin < end; begin += kRows_max) {
    const dim3 grid(blocks_for(c.columns, kThreads),
                    static_cast<unsigned>(end - begin < kRows_max ? end - begin : kRows_max));
    launch("copy_rows", copy_kernel, grid, kThreads, 0, c, begin);
  }
}

void add_rows(const AddRows& a, std::int64_t begin, std::int64_t end) {
  for (; begin < end; begin += kRows_max) {
    const dim3 grid(blocks_for(a.columns, kThreads),
                    static_cast<unsigned>(end - begin < kRows_max ? end - begin : kRows_max));
    launch("add_rows", add_kernel, grid, kThreads, 0, a, begin);
  }
}

void zero(float* x, std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  check(cudaMemsetAsync(x + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float),
                        current_stream()),
        "zero");
}

void rmsnorm(const float* x,
             std::int64_t ldx,
             const float* weight,
             float eps,
             std::int64_t d,
             float* y,
             std::int64_t ldy,
             float* inv_rms,
             std::int64_t row_begin,
             std::int64_t row_end) {
  rmsnorm_heads({.heads = 1,
                 .head_dim = d,
                 .x = x,
                 .ldx = ldx,
                 .weight = weight,
                 .eps = eps,
                 .y = y,
                 .ldy = ldy,
                 .inv_rms = inv_rms},
                row_begin, row_end);
}

void rmsnorm_heads(const NormHeads& n, std::int64_t row_begin, std::int64_t row_end) {
  launch("rmsnorm", rmsnorm_kernel, blocks_for((row_end - row_begin) * n.heads, kTeams),
         kTeams * kLanes, 0, n, row_begin, row_end);
}

}  // namespace troupe::kernels::cuda
