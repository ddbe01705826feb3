// Measures what this machine can do at the active level: how fast it reads memory and how many
// multiply-adds it does per second. Benchmarks divide by these limits, so that a figure means the
// same on any machine and under any load. Owned by the benchmark; every member of its team calls
// `measure`. Takes about half a second, and the memory of the buffer.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/memory.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>

namespace troupe::kernels {

struct MachineLimits {
  int threads = 0;
  double fma_gflops = 0.0;     // counts 2 operations per multiply-add
  double read_gb_per_s = 0.0;  // 1 GB = 1e9 bytes
  // The least time in which these limits allow `flops` operations and the reading of `bytes`,
  // divided by the time taken, `seconds`. 0 if `seconds` is not positive.
  double share_of_limit(double flops, double bytes, double seconds) const;
};

// Multiply-adds per f32 lane of an instruction: 2 for pairs of bfloat16. The peak rate of the dtype
// is the f32 peak times this.
constexpr double products_of_lane(PanelDtype dtype) {
  return dtype == PanelDtype::kBf16Compute ? 2.0 : 1.0;
}

class Calibration {
 public:
  // `bytes` must be well above the size of the last-level cache; otherwise it measures the cache.
  explicit Calibration(const Ops& level, std::int64_t bytes = std::int64_t{512} << 20)
      : Calibration(level, core::host_memory(), bytes) {}
  // `level` works on `memory`. Device memory is read in one stretch, because the few microseconds
  // of a launch would distort shorter ones.
  Calibration(const Ops& level, core::Memory& memory, std::int64_t bytes);
  // Makes `passes` over the buffer in stretches of 128 MiB, and as many stretches of multiply-adds.
  // The best stretch counts, so that other load on the machine hardly matters. All members get the
  // same limits.
  MachineLimits measure(core::Team team, int passes = 4);

 private:
  const Ops& level_;
  const bool on_host_;
  core::Buffer<float> data_;
  MachineLimits limits_;
};

}  // namespace troupe::kernels
