// The gradient of the embedding. Rows of the same token add to the same numbers, in ascending
// order. So one thread block, that of the token's first row, does all of them, for 1024 columns
// that it keeps in registers. To find these rows, every row's token is compared with every other's
// (a billion comparisons for 32 thousand rows, which takes milliseconds). The sums are bound by
// memory or, if one token has most rows, by that block's chain.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/cuda/primitives.cuh"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kOwn = 4;  // columns per thread

// Lists in ascending order which of the rows first .. first + kThreads - 1 have the token, and
// returns their number. All threads must call it.
__device__ int list_rows(
    const EmbedGrad& e, std::int32_t token, std::int64_t first, std::int64_t* list, int* counts) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const std::int64_t row = first + thread;
  const bool match = row < e.rows && e.tokens[row] == token;
  const unsigned bits = __ballot_sync(kAllLanes, match ? 1 : 0);
  if (thread % 32 == 0) counts[warp] = __popc(bits);
  __syncthreads();
  int before = __popc(bits & ((1u << (thread % 32)) - 1u)), all = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += counts[w];
    all += counts[w];
  }
  if (match) list[before] = row;
  __syncthreads();
  return all;
}

__global__ void __launch_bounds__(kThreads)
    embed_grad_kernel(EmbedGrad e, Range columns, unsigned chunks) {
  __shared__ int earlier;
  __shared__ int counts[kWarps];
  __shared__ std::int64_t list[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = blockIdx.x / chunks;
  const std::int64_t first_column =
      columns.begin + blockIdx.x % chunks * (kThreads * kOwn) + thread;
  const std::int32_t token = e.tokens[row];
  if (token == e.skipped) return;  // the whole block
  if (thread == 0) earlier = 0;
  __syncthreads();
  bool found = false;
#pragma unroll 4
  for (std::int64_t r = thread; r < row; r += kThreads)
    found = found || e.tokens[r] == token;
  if (found) earlier = 1;
  __syncthreads();
  if (earlier != 0) return;

  float* const out = e.table + token * e.hidden;
  float sum[kOwn];
#pragma unroll
  for (int j = 0; j < kOwn; ++j)
    sum[j] = first_column + j * kThreads < columns.end ? out[first_column + j * kThreads] : 0.0f;
  for (std::int64_t first = row; first < e.rows; first += kThreads) {
    const int count = list_rows(e, token, first, list, counts);
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
      const float* const in = e.dx + list[i] * e.hidden;
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        const std::int64_t column = first_column + j * kThreads;
        if (column < columns.end) sum[j] = sum[j] + in[column] * e.scale;
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kOwn; ++j)
    if (first_column + j * kThreads < columns.end) out[first_column + j * kThreads] = sum[j];
}

}  // namespace

void embed_grad(const EmbedGrad& e, Range columns) {
  const std::int64_t chunks = (columns.size() + kThreads * kOwn - 1) / (kThreads * kOwn);
  if (e.rows <= 0 || columns.empty()) return;
  launch("embed_grad", embed_grad_kernel, blocks_for(e.rows * chunks, 1), kThreads, 0, e, columns,
         chunks);
}

}  // namespace troupe::kernels::cuda
