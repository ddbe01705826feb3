// A file that is written only at its end (O_APPEND), so that a crash damages at most its last
// record. Also functions that truncate a file and read it whole. One thread writes to an
// AppendFile; its destructor closes the file.
#pragma once

#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace troupe::store {

class AppendFile {
 public:
  // Opens the file for appending, and creates it if it does not exist. Its folder must exist.
  static core::Result<AppendFile> open(const std::filesystem::path& path);

  // Creates the file, or empties it if it exists.
  static core::Result<AppendFile> create(const std::filesystem::path& path);

  // Appends all of `bytes`. If a write fails, truncates the file to its previous length.
  core::Result<void> append(std::string_view bytes);
  // Waits until everything appended is on disk (fdatasync).
  core::Result<void> sync();
  // Closes the file now, and reports write errors that the system delayed until then.
  core::Result<void> close();
  const std::filesystem::path& path() const { return path_; }

 private:
  AppendFile(core::OwnedFd file, std::filesystem::path path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}
  core::OwnedFd file_;
  std::filesystem::path path_;
  std::uint64_t size_;
};

// Appends all of `bytes` to an open file of `size` bytes. If a write fails, truncates the file to
// that length.
core::Result<void> append_to(const core::OwnedFd& file,
                             const std::filesystem::path& path,
                             std::uint64_t size,
                             std::string_view bytes);

// Truncates a file to its first `bytes` bytes and syncs it. Does nothing if there is no such file.
core::Result<void> cut_file(const std::filesystem::path& path, std::uint64_t bytes);

// Returns the content of a file; empty if there is no such file.
core::Result<std::string> read_all(const std::filesystem::path& path);

}  // namespace troupe::store
