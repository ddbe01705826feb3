// Two probes, timed by member 0 between barriers; the best of several repetitions counts.
#include "kernels/calibrate.hpp"

#include <atomic>

namespace troupe::kernels {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Keeps a value, so that the work behind it must be done.
void keep(float value) {
  static std::atomic<float> sink{0.0f};
  sink.store(value, std::memory_order_relaxed);
}

constexpr std::int64_t kProbeRounds = 2'000'000;

}  // namespace

double MachineLimits::share_of_limit(double flops, double bytes, double seconds) const {
  const double floor = std::max(flops / (fma_gflops * 1e9), bytes / (read_gb_per_s * 1e9));
  return seconds > 0.0 ? floor / seconds : 0.0;
}

Calibration::Calibration(const Ops& level, std::int64_t bytes)
    : level_(level), data_(bytes / static_cast<std::int64_t>(sizeof(float)) / 1024 * 1024) {}

MachineLimits Calibration::measure(core::Team team, int repetitions) {
  const auto [begin, end] = team.share(data_.size(), 1024);
  for (std::int64_t i = begin; i < end; ++i) data_[i] = 1.0f;  // pages must be there, not zero pages
  if (team.rank == 0) limits_ = MachineLimits{.threads = team.size};
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    team.barrier();
    const Clock::time_point read_start = Clock::now();
    keep(level_.read_probe(data_.data() + begin, end - begin));
    team.barrier();
    const double read_seconds = seconds_since(read_start);
    float chain = 1.0f;
    const Clock::time_point fma_start = Clock::now();
    const double flops = level_.fma_probe(kProbeRounds, &chain);
    keep(chain);
    team.barrier();
    const double fma_seconds = seconds_since(fma_start);
    if (team.rank == 0) {
      limits_.read_gb_per_s =
          std::max(limits_.read_gb_per_s, 4e-9 * static_cast<double>(data_.size()) / read_seconds);
      limits_.fma_gflops =
          std::max(limits_.fma_gflops, 1e-9 * flops * team.size / fma_seconds);
    }
  }
  team.barrier();
  return limits_;
}

}  // namespace troupe::kernels
