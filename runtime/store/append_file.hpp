// A file that only grows: each append is one write at its end, so a crash leaves whole records and
// at most one torn tail. Short writes are completed. Owned by one writer, one thread; closed at the
// end of its life.
#pragma once

#include "runtime/core/owned_fd.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace troupe::store {

class AppendFile {
 public:
  // Made when it is not there; its folder must be.
  static core::Result<AppendFile> open(const std::filesystem::path& path);

  // A new file, or an old one emptied.
  static core::Result<AppendFile> create(const std::filesystem::path& path);

  // Appends all of `bytes`. After an error the file is cut back to its previous length.
  core::Result<void> append(std::string_view bytes);
  // Puts everything on disk.
  core::Result<void> sync();
  // Closes it now and reports errors that come late.
  core::Result<void> close();
  const std::filesystem::path& path() const { return path_; }

 private:
  AppendFile(core::OwnedFd file, std::filesystem::path path, std::uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}
  core::OwnedFd file_;
  std::filesystem::path path_;
  std::uint64_t size_;
};

// Cuts a file to its first `bytes`, synced. A missing file counts as one of 0 bytes.
core::Result<void> cut_file(const std::filesystem::path& path, std::uint64_t bytes);

// The whole file, empty when there is none.
core::Result<std::string> read_all(const std::filesystem::path& path);

}  // namespace troupe::store
