// Gradients of RMSNorm and of a bias, and two gathers: mix_rows and kv_gather. A team (lanes.cuh)
// computes a sum over a row. Sums over all rows are chains, one per column, that must not be cut.
// For these a thread block takes 16 columns. All its threads fetch the next tile of rows (and
// multiply what they can) while 16 of them add the last tile from shared memory. A chain is
// therefore bound by the latency of one multiply-add after another (4 clocks, about 6 with the
// reads), or by memory if there are many columns. The other kernels are bound by memory.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTeams = 8;  // rows per block of rmsnorm_backward

__global__ void __launch_bounds__(kThreads)
    mix_kernel(MixRows mix, std::int64_t row_begin, unsigned per_row) {
  const std::int64_t row = row_begin + blockIdx.x / per_row;
  const std::int64_t i = blockIdx.x % per_row * kThreads + threadIdx.x;
  if (i >= mix.n) return;
  const std::int64_t first = row * mix.choices;
  float sum = 0.0f;
#pragma unroll 4
  for (std::int64_t c = 0; c < mix.choices; ++c) {
    const float weight = mix.weight == nullptr ? 1.0f : mix.weight[first + c];
    sum = __fmaf_rn(weight, mix.y[mix.place[first + c] * mix.ldy + i], sum);
  }
  if (mix.extra != nullptr) {
    const float weight = mix.extra_weight == nullptr ? 1.0f : mix.extra_weight[row * mix.ldw];
    sum = __fmaf_rn(weight, mix.extra[row * mix.ldx + i], sum);
  }
  mix.out[row * mix.ldo + i] = mix.residual[row * mix.ldr + i] + sum;
}

// The size of a tile of K and V. Adjacent rows mostly have adjacent slots, and keys are adjacent in
// the pool. So K is read along the rows and transposed in shared memory.
constexpr int kGatherRows = 16, kGatherColumns = 64;

__global__ void __launch_bounds__(kThreads) gather_kernel(KvWrite w, Range rows, unsigned per_row) {
  __shared__ float turned[kGatherRows][kGatherColumns + 1];
  const std::int64_t width = w.kv_heads * w.head_dim;
  const auto* const k_pool = static_cast<const float*>(w.k_pool.data);
  const auto* const v_pool = static_cast<const float*>(w.v_pool.data);
  const std::int64_t first_row = rows.begin + blockIdx.x / per_row * kGatherRows;
  const std::int64_t first_column = blockIdx.x % per_row * kGatherColumns;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kGatherRows * kGatherColumns; i += kThreads) {
    const std::int64_t row = first_row + i % kGatherRows, column = first_column + i / kGatherRows;
    if (row >= rows.end || column >= width) continue;
    float k = 0.0f;
    for (std::int32_t s = w.slot_begin[row]; s < w.slot_begin[row + 1]; ++s) {
      const std::int64_t slot = w.slots[s];
      k = k + k_pool[(slot / kKvBlock * width + column) * kKvBlock + slot % kKvBlock];
    }
    turned[i % kGatherRows][i / kGatherRows] = k;
  }
  __syncthreads();
  for (int i = thread; i < kGatherRows * kGatherColumns; i += kThreads) {
    const std::int64_t row = first_row + i / kGatherColumns;
    const std::int64_t column = first_column + i % kGatherColumns;
    if (row >= rows.end || column >= width) continue;
    const auto dim = static_cast<unsigned>(w.head_dim), at = static_cast<unsigned>(column);
    const std::int64_t head = at / dim, d = at % dim;
    float v = 0.0f;
    for (std::int32_t s = w.slot_begin[row]; s < w.slot_begin[row + 1]; ++s) {
      const std::int64_t slot = w.slots[s];
      v = v +
          v_pool[((slot / kKvBlock * w.kv_heads + head) * kKvBlock + slot % kKvBlock) * w.head_dim +
                 d];
    }
    w.k[row * w.ldk + column] = turned[i / kGatherColumns][i % kGatherColumns];
    w.v[row * w.ldv + column] = v;
  }
}

__global__ void __launch_bounds__(kTeams* kLanes)
    rmsnorm_backward_kernel(RmsNormBackward n, Range rows) {
  const int lane = threadIdx.x % kLanes;
  const std::int64_t row = rows.begin + std::int64_t{blockIdx.x} * kTeams + threadIdx.x / kLanes;
  const bool idle = row >= rows.end;  // still takes part in the warp's shuffles
  const float* const in = n.x + row * n.ldx;
  const float* const grad = n.dy + row * n.ldy;
  float dot = 0.0f;
#pragma unroll 8
  for (std::int64_t i = idle ? n.d : lane; i < n.d; i += kLanes)
    dot = __fmaf_rn(grad[i] * n.weight[i], in[i], dot);
  const float mean = lanes_sum(dot) / static_cast<float>(n.d);
  if (idle) return;
  const float r = n.inv_rms[row];
  const float pull = (mean * r) * (r * r);
  float* const out = n.dx + row * n.lddx;
#pragma unroll 4
  for (std::int64_t i = lane; i < n.d; i += kLanes) {
    const float direct = (grad[i] * n.weight[i]) * r;
    out[i] = out[i] + __fmaf_rn(-pull, in[i], direct);
  }
}

constexpr int kColumns = 16, kTileRows = 128;
constexpr int kLoads = kTileRows * kColumns / kThreads;  // per thread and tile

// The terms of a column's chain over the rows, fma(factor, other factor, sum), which starts from
// `out`.
struct WeightTerms {
  RmsNormWeightGrad n;
  __device__ float factor(std::int64_t row, std::int64_t c) const { return n.dy[row * n.ldy + c]; }
  __device__ float other(std::int64_t row, std::int64_t c) const {
    return n.x[row * n.ldx + c] * n.inv_rms[row];
  }
};
// The other factor is one, so each step rounds like an addition.
struct SumTerms {
  ColumnSum s;
  __device__ float factor(std::int64_t row, std::int64_t c) const { return s.dy[row * s.ldy + c]; }
  __device__ float other(std::int64_t, std::int64_t) const { return 1.0f; }
};

template <class Terms>
__global__ void __launch_bounds__(kThreads)
    column_kernel(Terms terms, std::int64_t rows, float* out, Range columns) {
  __shared__ float factor[2][kTileRows][kColumns], other[2][kTileRows][kColumns];
  const int thread = static_cast<int>(threadIdx.x);
  const int place = thread % kColumns, first = thread / kColumns;
  const std::int64_t column = columns.begin + std::int64_t{blockIdx.x} * kColumns + place;
  const bool adds = thread < kColumns && column < columns.end;
  float a[kLoads], b[kLoads];
  const auto fetch = [&](std::int64_t row) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const std::int64_t at = row + first + i * (kThreads / kColumns);
      const bool there = at < rows && column < columns.end;
      a[i] = there ? terms.factor(at, column) : 0.0f;
      b[i] = there ? terms.other(at, column) : 0.0f;
    }
  };
  const auto put = [&](int stage) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      factor[stage][first + i * (kThreads / kColumns)][place] = a[i];
      other[stage][first + i * (kThreads / kColumns)][place] = b[i];
    }
  };
  float sum = adds ? out[column] : 0.0f;
  fetch(0);
  put(0);
  __syncthreads();
  int stage = 0;
  for (std::int64_t row = 0; row < rows; row += kTileRows, stage ^= 1) {
    const bool more = row + kTileRows < rows;
    if (more) fetch(row + kTileRows);
    if (adds) {
      const int count = static_cast<int>(more ? kTileRows : rows - row);
      int i = 0;
      for (; i + 16 <= count; i += 16)
#pragma unroll
        for (int j = 0; j < 16; ++j)
          sum = __fmaf_rn(factor[stage][i + j][place], other[stage][i + j][place], sum);
      for (; i < count; ++i)
        sum = __fmaf_rn(factor[stage][i][place], other[stage][i][place], sum);
    }
    if (more) put(stage ^ 1);
    __syncthreads();
  }
  if (adds) out[column] = sum;
}

template <class Terms>
void add_columns(
    const char* name, const Terms& terms, std::int64_t rows, float* out, Range columns) {
  if (columns.empty() || rows <= 0) return;
  launch(name, column_kernel<Terms>, blocks_for(columns.size(), kColumns), kThreads, 0, terms, rows,
         out, columns);
}

}  // namespace

void mix_rows(const MixRows& mix, Range rows) {
  const std::int64_t per_row = (mix.n + kThreads - 1) / kThreads;
  if (rows.empty()) return;
  launch("mix_rows", mix_kernel, blocks_for(rows.size() * per_row, 1), kThreads, 0, mix, rows.begin,
         per_row);
}

void kv_gather(const KvWrite& w, Range rows) {
  if (rows.empty()) return;
  const std::int64_t per_row = (w.kv_heads * w.head_dim + kGatherColumns - 1) / kGatherColumns;
  const std::int64_t tiles = (rows.size() + kGatherRows - 1) / kGatherRows;
  launch("kv_gather", gather_kernel, blocks_for(tiles * per_row, 1), kThreads, 0, w, rows, per_row);
}

void rmsnorm_backward(const RmsNormBackward& n, Range rows) {
  if (rows.empty()) return;
  launch("rmsnorm_backward", rmsnorm_backward_kernel, blocks_for(rows.size(), kTeams),
         kTeams * kLanes, 0, n, rows);
}

void rmsnorm_weight_grad(const RmsNormWeightGrad& n, Range columns) {
  add_columns("rmsnorm_weight_grad", WeightTerms{n}, n.rows, n.dweight, columns);
}

void column_sum(const ColumnSum& c, Range columns) {
  add_columns("column_sum", SumTerms{c}, c.rows, c.sums, columns);
}

}  // namespace troupe::kernels::cuda
