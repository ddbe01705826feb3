// A file being written, by descriptor: short writes are completed and every error is translated.
// Owned by its writer, one thread; closed at the end of its life (`close` reports late errors).
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <filesystem>

namespace troupe::store {

class FileHandle {
 public:
  // A new file, or an old one emptied.
  static core::Result<FileHandle> create(const std::filesystem::path& path);

  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&&) = delete;
  ~FileHandle();

  core::Result<void> write(const void* data, std::size_t bytes);
  core::Result<void> close();

 private:
  FileHandle(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::filesystem::path path_;
};

}  // namespace troupe::store
