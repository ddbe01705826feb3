// The memory that a team computes in: the host's or a device's. Owned by the owner of the device;
// must outlive every buffer in it. One thread at a time, except for `release` and sharing between
// processes. `upload`, `download` and `copy` take effect after all work submitted earlier;
// `download` waits for that work, and a large `upload` to a device does so too.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace troupe::core {

// A device is out of memory. From Memory::allocate, the message says how much was requested and how
// much is free.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A device failed; the message says what it was doing and what the driver reports. The device
// cannot be used any more.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Memory {
 public:
  virtual ~Memory() = default;

  // Zeroed, and aligned to 64 bytes (on a device to 256); null only for 0 bytes. Throws OutOfMemory
  // on a device; on the host, running out of memory ends the process.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;

  // Copies from host memory, which the caller may change as soon as the call returns.
  virtual void upload(void* to, const void* from_host, std::size_t bytes) = 0;
  // Copies to host memory; waits until all work submitted before is done. Throws DeviceError.
  virtual void download(void* to_host, const void* from, std::size_t bytes) = 0;
  // Copies within this memory; the ranges do not overlap.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  // Waits until all work submitted before is done. Throws DeviceError.
  virtual void wait() {}

  // Sharing device memory between processes of one host. If the names of two memories are equal,
  // one can open what the other shares. An empty name: no sharing.
  using SharedHandle = std::array<unsigned char, 64>;
  virtual std::string shared_name() const { return {}; }
  // Shares a whole block that `allocate` returned. It must have at least kShared_bytes; otherwise
  // neighbouring blocks would be shared too. False if the system refuses.
  virtual bool share(const void* /*memory*/, SharedHandle& /*handle*/) { return false; }
  // Maps another process's memory until close_shared; null if the system refuses.
  virtual void* open_shared(const SharedHandle& /*handle*/) { return nullptr; }
  virtual void close_shared(void* /*memory*/) noexcept {}
  static constexpr std::size_t kShared_bytes = std::size_t{2} << 20;

  // Whether the CPU can read and write it directly.
  virtual bool on_host() const noexcept = 0;
};

// The host memory of this process.
Memory& host_memory() noexcept;

}  // namespace troupe::core
