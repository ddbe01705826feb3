// A block of memory that processes of one host share: its maker hands the descriptor on (over a
// Unix socket), and others map it. All pages exist from the start and the size is sealed, so that
// no access raises SIGBUS whatever another process does. Move-only, single owner; the bytes are
// shared, and who may write when is up to the users.
#pragma once

#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>

namespace troupe::core {

class SharedMemory {
 public:
  enum class Others { kRead, kWrite };

  // Zeroed memory that this process may write. `what` names it in errors ("a snapshot of the
  // weights"). Error kResources: there is not enough shared memory.
  static Result<SharedMemory> create(const std::string& what, std::uint64_t bytes, Others others);
  // Maps what another process made with `create`; the descriptor may be closed afterwards. Errors:
  // kData (it has another size than `bytes`, or one that can shrink), kResources.
  static Result<SharedMemory> open(const std::string& what,
                                   const OwnedFd& memory,
                                   std::uint64_t bytes,
                                   Others mode);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  char* data() const noexcept { return data_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  int fd() const noexcept { return memory_.get(); }  // negative for opened memory

 private:
  OwnedFd memory_;
  char* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::core
