// Launches over the independent elements of a matrix. A thread has kPerThread elements of one row,
// spaced so that several loads are in flight. A grid covers at most 65535 rows; more rows take more
// launches.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"

namespace troupe::kernels::cuda {

inline constexpr int kElementThreads = 128;
inline constexpr int kPerThread = 4;

// Call in a kernel: runs `each(column)` for the thread's columns below `columns`.
template <class Each>
__device__ inline void for_columns(std::int64_t columns, const Each& each) {
  const std::int64_t first =
      std::int64_t{blockIdx.x} * (kElementThreads * kPerThread) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t column = first + i * kElementThreads;
    if (column < columns) each(column);
  }
}

// The kernel's last parameter is the row to which it adds blockIdx.y.
template <class... Params, class... Args>
void launch_elements(const char* name,
                     void (*kernel)(Params...),
                     std::int64_t columns,
                     Range rows,
                     const Args&... args) {
  constexpr std::int64_t kRows_max = 65535;
  for (; !rows.empty(); rows.begin += kRows_max) {
    const std::int64_t count = rows.size() < kRows_max ? rows.size() : kRows_max;
    launch(name, kernel,
           dim3(blocks_for(columns, kElementThreads * kPerThread), static_cast<unsigned>(count)),
           kElementThreads, 0, args..., rows.begin);
  }
}

}  // namespace troupe::kernels::cuda
