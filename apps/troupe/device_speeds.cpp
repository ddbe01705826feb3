// Probes on buffers of the device.
#include "apps/troupe/device_speeds.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace troupe::app {
namespace {

using kernels::cuda::Device;

double seconds_of_batch(Device& device, const std::function<void()>& work, int times) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i)
    work();
  device.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class DeviceBlock {
 public:
  DeviceBlock(core::Memory& memory, std::uint64_t bytes)
      : memory_(memory), bytes_(bytes), data_(memory.allocate(bytes)) {}
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock() { memory_.release(data_, bytes_); }
  float* floats() { return static_cast<float*>(data_); }

 private:
  core::Memory& memory_;
  const std::uint64_t bytes_;
  void* const data_;
};

}  // namespace

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

DeviceSpeeds measure_speeds(Device& device, std::uint64_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  const double gb = static_cast<double>(bytes) / 1e9;
  core::Memory& memory = device.memory();
  device.enter();
  DeviceBlock a(memory, bytes), b(memory, bytes);
  std::vector<float> host(static_cast<std::size_t>(count), 1.0f);
  memory.upload(a.floats(), host.data(), bytes);
  DeviceSpeeds speeds;
  float sink = 0;
  speeds.read_gb_per_s =
      gb / seconds_of(device, [&] { sink += device.ops().read_probe(a.floats(), count); });
  speeds.copy_gb_per_s =
      2 * gb / seconds_of(device, [&] { memory.copy(b.floats(), a.floats(), bytes); });
  speeds.upload_gb_per_s =
      gb / seconds_of(device, [&] { memory.upload(b.floats(), host.data(), bytes); });
  speeds.download_gb_per_s =
      gb / seconds_of(device, [&] { memory.download(host.data(), b.floats(), bytes); });
  double operations = 0;
  constexpr std::int64_t kRounds = 4096;
  const double seconds =
      seconds_of(device, [&] { operations = device.ops().fma_probe(kRounds, b.floats()); });
  speeds.fma_gflops = operations / seconds / 1e9;
  return speeds;
}

}  // namespace troupe::app
