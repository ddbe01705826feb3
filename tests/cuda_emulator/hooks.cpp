#include "tests/cuda_emulator/hooks.hpp"

#include "tests/cuda_emulator/stream.hpp"

namespace {

using troupe_emulator::Device;
using troupe_emulator::kBase;
using troupe_emulator::streams;
using Lock = std::lock_guard<std::recursive_mutex>;

bool is_stream(const void* handle) {
  const auto& all = streams();
  return std::find(all.begin(), all.end(), handle) != all.end();
}
int present_one() {
  return troupe_emulator::present_device;
}
int device_of(const void* handle) {
  const Lock lock(Device::get().mutex);
  return is_stream(handle) ? static_cast<const troupe_emulator_stream*>(handle)->device : -1;
}
std::size_t room_from(const void* at) {
  const Lock lock(Device::get().mutex);
  if (!Device::owns(at)) return 0;
  const auto [offset, bytes] = Device::get().block_of(at);
  return bytes == 0 ? 0 : kBase + offset + bytes - reinterpret_cast<std::uintptr_t>(at);
}
void add_step(void* handle, std::function<bool()> step) {
  const Lock lock(Device::get().mutex);
  static_cast<troupe_emulator_stream*>(handle)->waiting.push_back(std::move(step));
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const troupe_emulator::Hooks troupe_cuda_emulator_hooks = {present_one, device_of, room_from,
                                                           add_step};
