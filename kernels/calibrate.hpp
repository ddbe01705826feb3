// What this machine can do at the active level, measured now: how fast memory is read and how many
// multiply-adds it does a second. Benchmarks divide by these, so that a figure means the same on
// any machine and beside any load. Owned by the benchmark; every member of its team calls
// `measure`. Takes about half a second and the buffer's memory.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/memory.hpp"
#include "runtime/core/team.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace troupe::kernels {

struct MachineLimits {
  int threads = 0;
  double fma_gflops = 0.0;     // 2 operations a multiply-add
  double read_gb_per_s = 0.0;  // 1e9 bytes
  // Achieved over the smaller of the multiply-add peak and what reading `bytes` allows.
  double share_of_limit(double flops, double bytes, double seconds) const;
};

// Multiply-adds that one lane of an instruction does: 2 for pairs of bfloat16. The peak is that of
// f32 times this.
constexpr double products_of_lane(PanelDtype dtype) {
  return dtype == PanelDtype::kBf16Compute ? 2.0 : 1.0;
}

class Calibration {
 public:
  // `bytes` must be well above the last-level cache, or it is the cache that is measured.
  explicit Calibration(const Ops& level, std::int64_t bytes = std::int64_t{512} << 20)
      : Calibration(level, core::host_memory(), bytes) {}
  // `level` works on `memory`. A device's is read in one stretch: a launch takes some microseconds,
  // which would show in shorter ones.
  Calibration(const Ops& level, core::Memory& memory, std::int64_t bytes);
  // The best of many short stretches counts, so that other load on the machine hardly shows:
  // `passes` over the buffer in stretches of 128 MiB, and as many of multiply-adds. All members get
  // the same limits.
  MachineLimits measure(core::Team team, int passes = 4);

 private:
  const Ops& level_;
  const bool on_host_;
  core::Buffer<float> data_;
  MachineLimits limits_;
};

}  // namespace troupe::kernels
