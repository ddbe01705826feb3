// A publisher's shared memory in this process, read-only. A receiver keeps the mappings of the last
// few buffers, since a publisher uses them in turn: mapping again costs more than a step.
// Each mapping has one owner or is shared by pointer; the set is used by the fetching thread.
#pragma once

#include "runtime/weights/socket.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace troupe::weights {

class MappedMemory {
 public:
  // Errors: kData (the size is another or can still change), kResources.
  static core::Result<std::shared_ptr<const MappedMemory>> map(const OwnedFd& memory,
                                                               std::uint64_t id,
                                                               std::uint64_t bytes);
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();
  const char* data() const { return data_; }
  std::uint64_t id() const { return id_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  MappedMemory(const char* data, std::uint64_t id, std::uint64_t bytes)
      : data_(data), id_(id), bytes_(bytes) {}
  const char* const data_;
  const std::uint64_t id_, bytes_;
};

class MappingSet {
 public:
  // The mapping of buffer `id`, kept or made; the oldest beyond kWeightMappings_max is let go.
  core::Result<std::shared_ptr<const MappedMemory>> get(const OwnedFd& memory,
                                                        std::uint64_t id,
                                                        std::uint64_t bytes);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const MappedMemory>> kept_;  // last used at the end
};

}  // namespace troupe::weights
