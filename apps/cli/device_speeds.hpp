// Measures the device speeds that bound our kernels: memory reads and copies, copies to and from
// the host, multiply-adds. Uses the device's own probes (kernels/ops.hpp), medians of 3.
#pragma once

#include "kernels/cuda/device.hpp"

#include <cstdint>
#include <functional>

namespace troupe::app {

struct DeviceSpeeds {
  double read_gb_per_s = 0;
  double copy_gb_per_s = 0;  // bytes read plus bytes written
  double upload_gb_per_s = 0, download_gb_per_s = 0;
  double fma_gflops = 0;
  double mma_gflops = 0;  // bf16 products of tensor cores, by the instruction that our kernels use
};

// Size of the buffer for measuring reads: larger than any GPU's caches, at most a quarter of the
// free memory.
std::int64_t probe_bytes(const kernels::cuda::Device& device);

// Measures on buffers of `probe_bytes`, which it frees. The device stays the thread's current one.
DeviceSpeeds measure_speeds(kernels::cuda::Device& device);

// The rate of tensor-core products alone.
double measure_mma_gflops(kernels::cuda::Device& device);

// Device seconds of one call of `work`, which enqueues: median of 3 runs of as many repetitions as
// take `seconds_min` together.
double seconds_of(kernels::cuda::Device& device,
                  const std::function<void()>& work,
                  double seconds_min = 0.02);

}  // namespace troupe::app
