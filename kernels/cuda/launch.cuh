// Launches kernels on the stream of the device that the calling thread has entered, and turns every
// CUDA error into an exception. Included by the .cu files that define kernels.
#pragma once

#include "runtime/core/memory.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace troupe::kernels::cuda {

// Memory of the device for what one operation leaves for the next kernel of its own: at a fixed
// address, so recorded graphs may use it, and about as large as the L2 cache.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// The device that the calling thread has entered.
struct Current {
  cudaStream_t stream = nullptr;
  int ordinal = 0;
  int multiprocessors = 0;
  std::size_t shared_bytes = 0;  // available to a block
  void* numbers = nullptr;       // kNumbersBytes on the device, for returned numbers
  Workspace workspace;
};
inline constexpr std::size_t kNumbersBytes = 256;
const Current& current_device();
cudaStream_t current_stream();
// Waits for all earlier work, then copies the device's result buffer `numbers` to `to`.
void read_numbers(void* to, std::size_t bytes);
template <class T>
T read_number() {
  T value;
  read_numbers(&value, sizeof(T));
  return value;
}
// Lets the kernel have as much dynamic shared memory on the entered device as there is. How much it
// may have is state of the process, so it is set once for all threads and sizes.
inline constexpr std::size_t kSharedAlways = 48 * 1024;  // a kernel may have that much without
void allow_shared(const void* kernel, const char* name);
// Throws core::DeviceError (core::OutOfMemory if memory ran out) if `code` is an error.
void check(cudaError_t code, const char* what);

constexpr unsigned blocks_for(std::int64_t count, std::int64_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

// Launches a kernel; does nothing if the grid is empty. `shared`: bytes of dynamic shared memory.
template <class... Params, class... Args>
void launch(const char* name,
            void (*kernel)(Params...),
            dim3 grid,
            dim3 block,
            std::size_t shared,
            const Args&... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (shared > kSharedAlways) allow_shared(reinterpret_cast<const void*>(kernel), name);
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = current_stream();
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), name);
}

}  // namespace troupe::kernels::cuda
