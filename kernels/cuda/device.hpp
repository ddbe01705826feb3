// The interface of a CUDA device: a memory, a table of operations (kernels/ops.hpp) and a few
// functions that only a device has. It needs no CUDA header. The implementation is in
// libtroupe_cuda.so (kernels/cuda/library.hpp), which is loaded at the first call for a device. One
// thread at a time may use a Device; all its work runs in order on one stream. Errors:
// core::OutOfMemory, core::DeviceError.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/memory.hpp"

#include <cstdint>
#include <memory>

namespace troupe::kernels::cuda {

struct DeviceInfo {
  char name[256] = {};
  int ordinal = 0;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0, free_bytes = 0;
  std::uint64_t l2_bytes = 0;
  int driver_version = 0, runtime_version = 0;  // 13000 is 13.0
};

// Recorded work that can be submitted again as a whole, with the pointers of the recording.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

// An order of work of its own on a device, for a library that takes a stream. It must be destroyed
// before its device, and what was enqueued on it must be done or given up by then.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void* handle() const = 0;  // a cudaStream_t
  // Whether all work enqueued on it is done; does not wait. Throws core::DeviceError if any failed.
  virtual bool done() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  // Whether it can read the memory of device `other` directly.
  virtual bool reaches(int other) const = 0;
  virtual core::Memory& memory() = 0;
  // The operations. They enqueue work on this device's stream; the calling thread must have entered
  // the device. Functions that return a number wait for it.
  virtual const Ops& ops() const = 0;
  // Makes this device the calling thread's, until another is entered.
  virtual void enter() = 0;
  // Waits for all work; throws if any of it failed.
  virtual void synchronize() = 0;
  // Runs `rounds` rounds of tensor-core products from registers. Returns the number of
  // floating-point operations; the caller takes the time.
  virtual double mma_probe(std::int64_t rounds, float* sink) = 0;
  // Work enqueued between these two calls is recorded, not done.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<Graph> end_recording() = 0;
  // Ends the recording without a graph, even after an error.
  virtual void drop_recording() noexcept = 0;
  // Beside the device's own stream: neither waits for the other.
  virtual std::unique_ptr<Stream> open_stream() = 0;
};

// What the library for GPUs exports as `troupe_cuda_entry`.
struct Entry {
  int abi = 0;                      // kAbi of the build; any other is refused
  int (*device_count)() = nullptr;  // 0 when there is no driver
  const char* (*why_none)() = nullptr;
  Device* (*open)(int ordinal) = nullptr;  // throws core::DeviceError
};
inline constexpr int kAbi = 14;

}  // namespace troupe::kernels::cuda
