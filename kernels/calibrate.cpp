#include "kernels/calibrate.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace troupe::kernels {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Stores a value, so that the compiler cannot remove the work that computes it.
void keep(float value) {
  static std::atomic<float> sink{0.0f};
  sink.store(value, std::memory_order_relaxed);
}

constexpr std::int64_t kProbeRounds = 300'000;
constexpr double kDeviceProbe_s = 2e-3;  // doubles a device's rounds until they take this long
// Floats read between two readings of the clock. They are several times the last-level cache, which
// would otherwise still hold much of a stretch from the previous pass.
constexpr std::int64_t kStretch = std::int64_t{32} << 20;

// Finds how many rounds of the probe to run, because devices differ by orders of magnitude.
std::int64_t rounds_of_device(const Ops& level) {
  std::int64_t rounds = 64;
  float chain = 1.0f;
  level.fma_probe(rounds, &chain);  // the first start of a kernel loads it
  for (; rounds < kProbeRounds; rounds *= 2) {
    const Clock::time_point start = Clock::now();
    level.fma_probe(rounds, &chain);
    if (seconds_since(start) >= kDeviceProbe_s) break;
  }
  return rounds;
}

}  // namespace

double MachineLimits::share_of_limit(double flops, double bytes, double seconds) const {
  const double floor = std::max(flops / (fma_gflops * 1e9), bytes / (read_gb_per_s * 1e9));
  return seconds > 0.0 ? floor / seconds : 0.0;
}

Calibration::Calibration(const Ops& level, core::Memory& memory, std::int64_t bytes)
    : level_(level),
      on_host_(memory.on_host()),
      data_(bytes / static_cast<std::int64_t>(sizeof(float)) / 1024 * 1024, memory) {}

MachineLimits Calibration::measure(core::Team team, int passes) {
  const auto own = team.share(data_.size(), 1024);
  for (std::int64_t i = own.begin; on_host_ && i < own.end; ++i)
    data_[i] = 1.0f;  // touches the pages, so that they exist and are local
  if (team.rank == 0) limits_ = MachineLimits{.threads = team.size};
  const auto best = [&](double& limit, double amount, Clock::time_point start) {
    team.barrier();
    if (team.rank == 0) limit = std::max(limit, 1e-9 * amount / seconds_since(start));
  };
  const std::int64_t rounds = on_host_ ? kProbeRounds : rounds_of_device(level_);
  const std::int64_t stretches =
      on_host_ ? std::max<std::int64_t>(1, data_.size() / kStretch) : std::int64_t{1};
  for (std::int64_t i = 0; i < stretches * passes; ++i) {
    const std::int64_t stretch = i % stretches;
    const std::int64_t begin = data_.size() * stretch / stretches;
    const auto [first, last] = team.share(data_.size() * (stretch + 1) / stretches - begin, 1024);
    team.barrier();
    const Clock::time_point read_start = Clock::now();
    keep(level_.read_probe(data_.data() + begin + first, last - first));
    const std::int64_t floats = data_.size() / stretches;
    best(limits_.read_gb_per_s, 4.0 * static_cast<double>(floats), read_start);
    float chain = 1.0f;
    const Clock::time_point fma_start = Clock::now();
    const double flops = level_.fma_probe(rounds, &chain);
    keep(chain);
    best(limits_.fma_gflops, flops * team.size, fma_start);
  }
  team.barrier();
  return limits_;
}

}  // namespace troupe::kernels
