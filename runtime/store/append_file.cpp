#include "runtime/store/append_file.hpp"

#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace troupe::store {

core::Result<AppendFile> AppendFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return io_failure("open", path, errno);
  struct stat facts = {};
  if (::fstat(fd, &facts) != 0) {
    const int reason = errno;
    ::close(fd);
    return io_failure("open", path, reason);
  }
  return AppendFile(fd, path, static_cast<std::uint64_t>(facts.st_size));
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), size_(other.size_) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  return *this;
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

core::Result<void> AppendFile::append(std::string_view bytes) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      [[maybe_unused]] const int cut = ::ftruncate(fd_, static_cast<off_t>(size_));
      return io_failure("write", path_, reason);
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  size_ += bytes.size();
  return {};
}

core::Result<void> AppendFile::sync() {
  if (::fdatasync(fd_) != 0) return io_failure("sync", path_, errno);
  return {};
}

core::Result<void> cut_file(const std::filesystem::path& path, std::uint64_t bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return {};
  if (fd < 0) return io_failure("open", path, errno);
  const bool done = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 && ::fsync(fd) == 0;
  const int reason = errno;
  ::close(fd);
  if (!done) return io_failure("cut", path, reason);
  return {};
}

core::Result<std::string> read_all(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string out;
  if (fd < 0 && errno == ENOENT) return out;
  if (fd < 0) return io_failure("open", path, errno);
  char block[1 << 16];
  for (;;) {
    const ssize_t count = ::read(fd, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int reason = errno;
      ::close(fd);
      return io_failure("read", path, reason);
    }
    if (count == 0) break;
    out.append(block, static_cast<std::size_t>(count));
  }
  ::close(fd);
  return out;
}

}  // namespace troupe::store
