// How fast a device is at what bounds our kernels: reading, copying, copies to and from the host,
// multiply-adds. Measured by the device's own probes (kernels/ops.hpp), medians of 3.
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

// Of a buffer that a device's reading is measured on: above the caches of any GPU; a quarter of
// what is free where that is less.
std::int64_t probe_bytes(const kernels::cuda::Device& device);

// On buffers of `probe_bytes`. Leaves nothing allocated, and the device entered.
DeviceSpeeds measure_speeds(kernels::cuda::Device& device);

// The rate of tensor-core products alone.
double measure_mma_gflops(kernels::cuda::Device& device);

// Seconds that `work`, which enqueues, takes on the device: median of 3 of as many repetitions as
// last `seconds_min` together.
double seconds_of(kernels::cuda::Device& device,
                  const std::function<void()>& work,
                  double seconds_min = 0.02);

}  // namespace troupe::app
