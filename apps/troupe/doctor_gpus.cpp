#include "apps/troupe/doctor_gpus.hpp"

#include "apps/cli/device_speeds.hpp"
#include "apps/cli/system_facts.hpp"
#include "kernels/cuda/library.hpp"

#include <dlfcn.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <vector>

namespace troupe::app {
namespace {

using kernels::cuda::Device;
using kernels::cuda::DeviceInfo;

std::string version_text(int version) {  // 13000: 13.0
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// "2.28.9", or empty when there is none that loads.
std::string nccl_version() {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  using GetVersion = int (*)(int*);
  const auto get = reinterpret_cast<GetVersion>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (get == nullptr || get(&version) != 0) return {};
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string reached_from(const Device& device, int ordinal, int devices) {
  std::string list;
  for (int other = 0; other < devices; ++other) {
    if (other == ordinal || !device.reaches(other)) continue;
    list += (list.empty() ? "cuda:" : ", cuda:") + std::to_string(other);
  }
  return list;
}

void print_device(int ordinal, int devices) {
  auto opened = kernels::cuda::open_device(ordinal);
  if (!opened) {
    std::printf("gpu         %s\n", opened.failure().error.message.c_str());
    return;
  }
  Device& device = **opened;
  try {
    const DeviceInfo info = device.info();
    const DeviceSpeeds speeds = measure_speeds(device);
    std::printf("gpu         cuda:%d %s, sm_%d%d, %d multiprocessors, %s free of %s\n", ordinal,
                info.name, info.major, info.minor, info.multiprocessors,
                bytes_text(info.free_bytes).c_str(), bytes_text(info.memory_bytes).c_str());
    std::printf(
        "            driver for CUDA %s, reads %.0f GB/s, copies %.0f GB/s, to it %.1f, from "
        "it %.1f GB/s, f32 %.1f, bf16 products %.0f TFLOP/s\n",
        version_text(info.driver_version).c_str(), speeds.read_gb_per_s, speeds.copy_gb_per_s,
        speeds.upload_gb_per_s, speeds.download_gb_per_s, speeds.fma_gflops / 1e3,
        speeds.mma_gflops / 1e3);
    const std::string peers = reached_from(device, ordinal, devices);
    if (devices > 1)
      std::printf("            reads directly from %s\n",
                  peers.empty() ? "no other" : peers.c_str());
  } catch (const std::exception& error) {
    std::printf("gpu         cuda:%d: %s\n", ordinal, error.what());
  }
}

}  // namespace

void print_gpus() {
  const auto state = kernels::cuda::library_state();
  if (state.devices == 0) {
    std::printf("gpu         none: %s\n", state.why_none.c_str());
    return;
  }
  for (int i = 0; i < state.devices; ++i)
    print_device(i, state.devices);
  const std::string nccl = nccl_version();
  std::printf("nccl        %s\n",
              nccl.empty() ? "not found (libnccl.so.2 is not on the loader's path)" : nccl.c_str());
}

core::Result<void> print_gpus_json() {
  const auto state = kernels::cuda::library_state();
  if (state.devices == 0)
    return core::fail(core::ErrorCode::kResources, "no GPU: " + state.why_none);
  nlohmann::json gpus = nlohmann::json::array();
  for (int i = 0; i < state.devices; ++i) {
    TROUPE_TRY_ASSIGN(device, kernels::cuda::open_device(i));
    try {
      const DeviceInfo info = device->info();
      const DeviceSpeeds speeds = measure_speeds(*device);
      gpus.push_back({{"device", "cuda:" + std::to_string(i)},
                      {"name", info.name},
                      {"sm", info.major * 10 + info.minor},
                      {"multiprocessors", info.multiprocessors},
                      {"memory_bytes", info.memory_bytes},
                      {"driver_cuda", version_text(info.driver_version)},
                      {"read_gb_per_s", speeds.read_gb_per_s},
                      {"copy_gb_per_s", speeds.copy_gb_per_s},
                      {"upload_gb_per_s", speeds.upload_gb_per_s},
                      {"download_gb_per_s", speeds.download_gb_per_s},
                      {"fma_gflops", speeds.fma_gflops},
                      {"mma_gflops", speeds.mma_gflops}});
    } catch (const std::exception& error) {
      return core::fail(core::ErrorCode::kResources,
                        "cuda:" + std::to_string(i) + ": " + error.what());
    }
  }
  const nlohmann::json line{
      {"doctor", "gpus"}, {"library", state.path}, {"gpus", gpus}, {"nccl", nccl_version()}};
  std::printf("%s\n", line.dump().c_str());
  return {};
}

}  // namespace troupe::app
