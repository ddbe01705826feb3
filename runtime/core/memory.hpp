// Where the numbers live that a team computes on: the host's memory or a device's. Owned by whoever
// owns the device; outlives every buffer made from it. One thread at a time, except for `release`
// and what is between processes. `upload`, `download` and `copy` take their turn among the work
// that was submitted before; only `download` waits for it.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace troupe::core {

// A device has no room left; says how much was asked for and how much there is.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A device failed: what it was doing and what the driver says. Nothing more can be done with it.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Memory {
 public:
  virtual ~Memory() = default;

  // Zeroed and aligned to 64 bytes (a device's: to 256); null only for 0 bytes. Throws OutOfMemory;
  // on the host it aborts when the system has none left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;

  // Copies from the host's memory, which may be changed as soon as the call returns.
  virtual void upload(void* to, const void* from_host, std::size_t bytes) = 0;
  // Copies to the host's memory; waits until all work submitted before is done. Throws DeviceError.
  virtual void download(void* to_host, const void* from, std::size_t bytes) = 0;
  // Copies within this memory; the ranges do not overlap.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  // Waits until all work submitted before is done. Throws DeviceError.
  virtual void wait() {}

  // Between processes of one host, on a device: the names of two memories are equal when what one
  // shares the other can open. Empty: nothing can be shared.
  using SharedHandle = std::array<unsigned char, 64>;
  virtual std::string shared_name() const { return {}; }
  // Of the whole of what `allocate` gave; at least kShared_bytes, or neighbours would be shared as
  // well. False when the system refuses.
  virtual bool share(const void* /*memory*/, SharedHandle& /*handle*/) { return false; }
  // Another process's memory here, until close_shared; null when the system refuses.
  virtual void* open_shared(const SharedHandle& /*handle*/) { return nullptr; }
  virtual void close_shared(void* /*memory*/) noexcept {}
  static constexpr std::size_t kShared_bytes = std::size_t{2} << 20;

  // Whether the calling thread may read and write it like any other memory.
  virtual bool on_host() const noexcept = 0;
};

// The process's own.
Memory& host_memory() noexcept;

}  // namespace troupe::core
