// The device of the tests that compare one with the host: where TROUPE_CUDA_LIBRARY names a library
// of device kernels, its first device; else the arena (arena_team.hpp), which finds every number
// that host code touches.
#pragma once

#include "kernels/cuda/device_team.hpp"
#include "kernels/cuda/library.hpp"
#include "runtime/model/packed.hpp"
#include "tests/unit/runtime/model/arena_team.hpp"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace troupe::model {

// The first device of the library that TROUPE_CUDA_LIBRARY names. Null when it has none; then `why`
// says so.
inline std::unique_ptr<core::TeamRunner> make_gpu_team(std::string& why) {
  auto device = kernels::cuda::open_device(0);
  if (!device) {
    why = device.error().message;
    return nullptr;
  }
  return std::make_unique<kernels::cuda::DeviceTeam>(std::move(device).value());
}

// The same, on the emulated device unless the environment names another.
inline std::unique_ptr<core::TeamRunner> make_emulated_team(std::string& why) {
  const char* const build = std::getenv("TROUPE_BUILD_DIR");
  const std::string library =
      std::string(build != nullptr ? build : "build") + "/bin/libtroupe_cuda_emulated.so";
  ::setenv("TROUPE_CUDA_LIBRARY", library.c_str(), 0);
  ::setenv("TROUPE_CUDA_EMULATOR", "guard", 0);
  return make_gpu_team(why);
}

// The GPU, or without a library the arena.
inline std::unique_ptr<core::TeamRunner> make_device_team(std::string& why) {
  const char* const library = std::getenv("TROUPE_CUDA_LIBRARY");
  if (library == nullptr || *library == '\0') return std::make_unique<ArenaTeam>();
  return make_gpu_team(why);
}

// A suite on the device; skipped with the reason where there is none.
template <class Base>
class OnDevice : public Base {
 protected:
  void SetUp() override {
    std::string why;
    owner_ = make_device_team(why);
    if (owner_ == nullptr) GTEST_SKIP() << why;
    kernels::flush_denormals();
  }
  core::TeamRunner& device() { return *owner_; }
  core::Memory& memory() { return owner_->memory(); }

 private:
  std::unique_ptr<core::TeamRunner> owner_;
};

inline std::vector<float> numbers_of(const ParamStore& store) {
  const HostCopy host(store);
  return {host->data(), host->data() + host->size()};
}

// A host's model on a device.
struct DeviceModel {
  DeviceModel(core::TeamRunner& team,
              const ParamStore& host,
              kernels::PanelDtype dtype = kernels::PanelDtype::kF32)
      : params(host.to(team.memory())), weights(host.spec(), dtype, team.memory()) {
    team.run([&](core::Team member) { weights.fill(member, params, 1); });
  }
  ParamStore params;
  PackedWeights weights;
};

}  // namespace troupe::model
