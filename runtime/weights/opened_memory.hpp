// A publisher's snapshots on a device, opened in this process. A receiver keeps the last few open,
// since a publisher uses them in turn. Used by the fetching thread; what it gives out may be held
// by others.
#pragma once

#include "runtime/weights/push_protocol.hpp"

#include <memory>
#include <mutex>
#include <vector>

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

class OpenedSet {
 public:
  // Snapshot `id`, kept or opened; the oldest beyond kWeightMappings_max is let go. Error:
  // kResources.
  core::Result<std::shared_ptr<const OpenedMemory>> get(core::Memory& memory,
                                                        const core::Memory::SharedHandle& handle,
                                                        std::uint64_t id);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const OpenedMemory>> kept_;  // last used at the end
};

}  // namespace troupe::weights
