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

// Null when the library has no device; then `why` says so.
inline std::unique_ptr<core::TeamRunner> make_device_team(std::string& why) {
  const char* const library = std::getenv("TROUPE_CUDA_LIBRARY");
  if (library == nullptr || *library == '\0') return std::make_unique<ArenaTeam>();
  auto device = kernels::cuda::open_device(0);
  if (!device) {
    why = device.error().message;
    return nullptr;
  }
  return std::make_unique<kernels::cuda::DeviceTeam>(std::move(device).value());
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
