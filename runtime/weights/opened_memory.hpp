// A publisher's snapshot on a device, opened in this process. Shared by pointer.
#pragma once

#include "runtime/core/memory.hpp"

#include <cstdint>

namespace troupe::weights {

class OpenedMemory {
 public:
  OpenedMemory(core::Memory& memory, std::uint64_t id, void* data)
      : memory_(memory), id_(id), data_(data) {}
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  ~OpenedMemory() { memory_.close_shared(data_); }
  const float* data() const { return static_cast<const float*>(data_); }
  std::uint64_t id() const { return id_; }

 private:
  core::Memory& memory_;
  const std::uint64_t id_;
  void* const data_;
};

}  // namespace troupe::weights
