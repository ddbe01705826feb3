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
  core::OwnedFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  struct stat facts = {};
  if (!file || ::fstat(file.get(), &facts) != 0) return io_failure("open", path, errno);
  return AppendFile(std::move(file), path, static_cast<std::uint64_t>(facts.st_size));
}

core::Result<AppendFile> AppendFile::create(const std::filesystem::path& path) {
  core::OwnedFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (!file) return io_failure("create", path, errno);
  return AppendFile(std::move(file), path, 0);
}

core::Result<void> append_to(const core::OwnedFd& file,
                             const std::filesystem::path& path,
                             std::uint64_t size,
                             std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      [[maybe_unused]] const int cut = ::ftruncate(file.get(), static_cast<off_t>(size));
      return io_failure("write", path, reason);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

core::Result<void> AppendFile::append(std::string_view bytes) {
  TROUPE_TRY(append_to(file_, path_, size_, bytes));
  size_ += bytes.size();
  return {};
}

core::Result<void> AppendFile::sync() {
  if (::fdatasync(file_.get()) != 0) return io_failure("sync", path_, errno);
  return {};
}

core::Result<void> AppendFile::close() {
  if (::close(file_.release()) != 0) return io_failure("write", path_, errno);
  return {};
}

core::Result<void> cut_file(const std::filesystem::path& path, std::uint64_t bytes) {
  const core::OwnedFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return {};
  if (!file) return io_failure("open", path, errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 || ::fsync(file.get()) != 0)
    return io_failure("cut", path, errno);
  return {};
}

core::Result<std::string> read_all(const std::filesystem::path& path) {
  const core::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string out;
  if (!file && errno == ENOENT) return out;
  if (!file) return io_failure("open", path, errno);
  char block[1 << 16];
  for (;;) {
    const ssize_t count = ::read(file.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure("read", path, errno);
    if (count == 0) return out;
    out.append(block, static_cast<std::size_t>(count));
  }
}

}  // namespace troupe::store
