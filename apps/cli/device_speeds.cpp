#include "apps/cli/device_speeds.hpp"

#include "kernels/calibrate.hpp"
#include "runtime/core/buffer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace troupe::cli {
namespace {

using kernels::cuda::Device;

double seconds_of_batch(Device& device, const std::function<void()>& work, int times) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i)
    work();
  device.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::int64_t probe_bytes(const Device& device) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  return static_cast<std::int64_t>(std::min(kMost, device.info().free_bytes / 4));
}

double seconds_of(Device& device, const std::function<void()>& work, double seconds_min) {
  device.enter();
  seconds_of_batch(device, work, 1);  // loads the kernel
  int times = 1;
  double took = seconds_of_batch(device, work, times);
  while (took < seconds_min) {
    times = std::max(times * 2, static_cast<int>(times * seconds_min / std::max(took, 1e-6)));
    took = seconds_of_batch(device, work, times);
  }
  std::array<double, 3> rounds{took, seconds_of_batch(device, work, times),
                               seconds_of_batch(device, work, times)};
  std::sort(rounds.begin(), rounds.end());
  return rounds[1] / times;
}

double measure_mma_gflops(Device& device) {
  double operations = 0;
  float sink = 0;
  device.enter();
  std::int64_t rounds = 1;  // doubled until they take a millisecond
  while (rounds < (1 << 20) && seconds_of_batch(
                                   device, [&] { device.mma_probe(rounds, &sink); }, 1) < 1e-3)
    rounds *= 2;
  const double seconds = seconds_of(device, [&] { operations = device.mma_probe(rounds, &sink); });
  return operations / seconds / 1e9;
}

DeviceSpeeds measure_speeds(Device& device) {
  const auto bytes = static_cast<std::uint64_t>(probe_bytes(device));
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  const double gb = static_cast<double>(bytes) / 1e9;
  core::Memory& memory = device.memory();
  device.enter();
  core::Buffer<float> a(count, memory), b(count, memory);
  std::vector<float> host(static_cast<std::size_t>(count), 1.0f);
  memory.upload(a.data(), host.data(), bytes);
  DeviceSpeeds speeds;
  speeds.copy_gb_per_s =
      2 * gb / seconds_of(device, [&] { memory.copy(b.data(), a.data(), bytes); });
  speeds.upload_gb_per_s =
      gb / seconds_of(device, [&] { memory.upload(b.data(), host.data(), bytes); });
  speeds.download_gb_per_s =
      gb / seconds_of(device, [&] { memory.download(host.data(), b.data(), bytes); });
  const kernels::UseOps use(device.ops());
  kernels::Calibration calibration(device.ops(), memory, static_cast<std::int64_t>(bytes));
  const kernels::MachineLimits limits = calibration.measure(core::Team{}, 2);
  speeds.read_gb_per_s = limits.read_gb_per_s;
  speeds.fma_gflops = limits.fma_gflops;
  speeds.mma_gflops = measure_mma_gflops(device);
  return speeds;
}

}  // namespace troupe::cli
