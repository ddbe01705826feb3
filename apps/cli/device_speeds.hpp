// Measures the speeds of a GPU that bound our kernels: memory reads and copies, copies to and from
// the host, multiply-adds. Reads and f32 multiply-adds are the best of several runs
// (kernels/calibrate.hpp), the other figures medians of 3.
#pragma once

#include "kernels/cuda/device.hpp"

#include <cstdint>
#include <functional>

namespace troupe::cli {

struct DeviceSpeeds {
  double read_gb_per_s = 0;
  double copy_gb_per_s = 0;  // bytes read plus bytes written
  double upload_gb_per_s = 0, download_gb_per_s = 0;
  double fma_gflops = 0;
  double mma_gflops = 0;  // bf16 products on tensor cores, by the instruction that our kernels use
};

// Size of the buffers to measure with: 1 GiB, which exceeds any GPU's caches, but at most a quarter
// of the free memory.
std::int64_t probe_bytes(const kernels::cuda::Device& device);

// Takes buffers of `probe_bytes` and frees them. The device stays the thread's current one.
DeviceSpeeds measure_speeds(kernels::cuda::Device& device);

// DeviceSpeeds::mma_gflops alone.
double measure_mma_gflops(kernels::cuda::Device& device);

// Seconds that one call of `work` keeps the device busy; `work` only enqueues. Calls it so often
// that all calls together take `seconds_min`, three times over, and returns the median.
double seconds_of(kernels::cuda::Device& device,
                  const std::function<void()>& work,
                  double seconds_min = 0.02);

}  // namespace troupe::cli
