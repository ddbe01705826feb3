#include "runtime/store/file_handle.hpp"

#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace troupe::store {

core::Result<FileHandle> FileHandle::create(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return io_failure("create", path, errno);
  return FileHandle(fd, path);
}

FileHandle::FileHandle(FileHandle&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

core::Result<void> FileHandle::write(const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd_, next, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_failure("write", path_, errno);
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return {};
}

core::Result<void> FileHandle::close() {
  if (::close(std::exchange(fd_, -1)) != 0) return io_failure("write", path_, errno);
  return {};
}

}  // namespace troupe::store
