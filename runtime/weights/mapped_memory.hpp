// A publisher's shared memory in this process, read-only. Shared by pointer.
#pragma once

#include "runtime/net/socket.hpp"

#include <cstdint>
#include <memory>

namespace troupe::weights {

class MappedMemory {
 public:
  // Errors: kData (the size is another or can still change), kResources.
  static core::Result<std::shared_ptr<const MappedMemory>> map(const net::OwnedFd& memory,
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

}  // namespace troupe::weights
