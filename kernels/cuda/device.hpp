// A CUDA device as the rest of Troupe sees it: a memory, a table of operations (kernels/ops.hpp)
// and the few things that only a device does. No CUDA header is needed to include this; the classes
// behind it live in libtroupe_cuda.so (kernels/cuda/library.hpp), which is loaded when a device is
// configured. A Device is used by one thread at a time; all its work is done in order on one
// stream. Errors: core::OutOfMemory, core::DeviceError.
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

// Recorded work that is submitted again as a whole. All pointers stay those of the recording.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  // Whether it may read another device's memory directly.
  virtual bool reaches(int other) const = 0;
  virtual core::Memory& memory() = 0;
  // Enqueues on this device's stream when the calling thread has entered it. Functions that return
  // a number wait for it.
  virtual const Ops& ops() const = 0;
  // Makes this device the calling thread's, until another is entered.
  virtual void enter() = 0;
  // Waits for all work; throws what went wrong in it.
  virtual void synchronize() = 0;
  // Floating-point operations that `rounds` rounds of tensor-core products out of registers do; the
  // caller takes the time.
  virtual double mma_probe(std::int64_t rounds, float* sink) = 0;
  // What is enqueued between the two is recorded, not done.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<Graph> end_recording() = 0;
  // Ends it without a graph, whatever went wrong meanwhile.
  virtual void drop_recording() noexcept = 0;
};

// What libtroupe_cuda.so exports as `troupe_cuda_entry`.
struct Entry {
  int abi = 0;                      // kAbi of the build; another one is refused
  int (*device_count)() = nullptr;  // 0 when there is no driver
  const char* (*why_none)() = nullptr;
  Device* (*open)(int ordinal) = nullptr;  // throws core::DeviceError
};
inline constexpr int kAbi = 6;

}  // namespace troupe::kernels::cuda
