// What another emulated library of the same process (tests/nccl_emulator) may do with the emulated
// devices. The library that has them exports `troupe_cuda_emulator_hooks`.
#pragma once

#include <cstddef>
#include <functional>

namespace troupe_emulator {

struct Hooks {
  int (*present_device)();               // of the calling thread
  int (*device_of)(const void* stream);  // -1: there is no such stream
  // Bytes of the block of device memory that `at` lies in, from there on; 0: in none.
  std::size_t (*room_from)(const void* at);
  // Enqueues work that is done when `step` returns true. Whoever waits for the stream, or asks
  // whether it is done, calls it when its turn has come, again and again; it may touch device
  // memory.
  void (*add)(void* stream, std::function<bool()> step);
};

}  // namespace troupe_emulator
