#include "runtime/core/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace troupe::core {
namespace {

Failure no_shared_memory(const std::string& what, std::uint64_t bytes) {
  return fail(ErrorCode::kResources, "shared memory of " + std::to_string(bytes >> 10) +
                                         " KiB for " + what + ": " + std::strerror(errno));
}

}  // namespace

Result<SharedMemory> SharedMemory::create(const std::string& what,
                                          std::uint64_t bytes,
                                          Others others) {
  SharedMemory made;
  made.memory_ = OwnedFd(::memfd_create("troupe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int fd = made.memory_.get();
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    return no_shared_memory(what, bytes);
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return no_shared_memory(what, bytes);
  made.data_ = static_cast<char*>(mapped);
  made.bytes_ = bytes;
  ::madvise(mapped, bytes, MADV_HUGEPAGE);
  // Allocates every page now: a first touch later would cost more than a copy. Populating the
  // mapping gives huge pages; older kernels can only fallocate.
  if (::madvise(mapped, bytes, MADV_POPULATE_WRITE) != 0 &&
      (errno != EINVAL || ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) != 0)) {
    return no_shared_memory(what, bytes);
  }
  const int seals =
      F_SEAL_SHRINK | F_SEAL_GROW | (others == Others::kRead ? F_SEAL_FUTURE_WRITE : 0);
  if (::fcntl(fd, F_ADD_SEALS, seals) != 0) return no_shared_memory(what, bytes);
  return made;
}

Result<SharedMemory> SharedMemory::open(const std::string& what,
                                        const OwnedFd& memory,
                                        std::uint64_t bytes,
                                        Others mode) {
  struct stat facts {};
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (::fstat(memory.get(), &facts) != 0 || static_cast<std::uint64_t>(facts.st_size) != bytes ||
      seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(ErrorCode::kData, "the shared memory of " + what + " has " +
                                      std::to_string(facts.st_size) + " bytes, " +
                                      std::to_string(bytes) + " were announced, or can shrink");
  }
  const int access = mode == Others::kWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const mapped = ::mmap(nullptr, bytes, access, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return no_shared_memory(what, bytes);
  SharedMemory opened;
  opened.data_ = static_cast<char*>(mapped);
  opened.bytes_ = bytes;
  ::madvise(mapped, bytes, MADV_HUGEPAGE);
  ::madvise(mapped, bytes, MADV_POPULATE_READ);
  return opened;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : memory_(std::move(other.memory_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace troupe::core
