// Sums and maxima over a row in the order of docs/adr/0003: element i goes to virtual lane i mod
// 16, ascending, then a fixed tree joins the lanes. Sixteen adjacent threads ("a team") act as the
// lanes, so a warp holds two teams. All 16 threads must call; all get the result.
#pragma once

#include "kernels/cuda/primitives.cuh"
#include "kernels/cuda/scalar.cuh"

namespace troupe::kernels::cuda {

inline constexpr int kLanes = 16;

// Lane l += lane l + 8, then l + 4, l + 2, l + 1. Addition of two numbers is commutative, so every
// thread may add its partner's number.
template <class T>
__device__ inline T lanes_sum(T mine) {
  for (int step = 8; step > 0; step /= 2)
    mine = mine + __shfl_xor_sync(kAllLanes, mine, step);
  return mine;
}

// The same as LaneMax::total of the reference: `larger(upper, lower)`, whichever of the two a
// thread holds.
__device__ inline float lanes_max(float mine) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  for (int step = 8; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, mine, step);
    mine = (lane & step) == 0 ? larger(other, mine) : larger(mine, other);
  }
  return mine;
}

}  // namespace troupe::kernels::cuda
