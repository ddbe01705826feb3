#include "apps/bench/machine.hpp"

#include "apps/cli/device_speeds.hpp"
#include "kernels/cuda/device_team.hpp"

#include <algorithm>

namespace troupe::bench {
namespace {

constexpr std::int64_t kHostBytes = std::int64_t{512} << 20;  // well above any last-level cache

}  // namespace

kernels::MachineLimits measure_limits(core::TeamRunner& team, std::int64_t bytes, int passes) {
  const kernels::Ops* level = nullptr;  // within a region kernels::ops() is the team's device's
  team.run([&](core::Team member) {
    if (member.rank == 0) level = &kernels::ops();
  });
  if (bytes == 0) {
    const auto* const gpu = dynamic_cast<kernels::cuda::DeviceTeam*>(&team);
    bytes = gpu == nullptr ? kHostBytes : cli::probe_bytes(gpu->device());
  }
  kernels::Calibration calibration(*level, team.memory(), bytes);
  kernels::MachineLimits limits;
  team.run([&](core::Team member) {
    const kernels::MachineLimits measured = calibration.measure(member, passes);
    if (member.rank == 0) limits = measured;
  });
  return limits;
}

kernels::MachineLimits best_of(const kernels::MachineLimits& a, const kernels::MachineLimits& b) {
  kernels::MachineLimits out = a;
  out.fma_gflops = std::max(a.fma_gflops, b.fma_gflops);
  out.read_gb_per_s = std::max(a.read_gb_per_s, b.read_gb_per_s);
  return out;
}

}  // namespace troupe::bench
