// The file operations with which roles write and read their parts of a checkpoint and the
// experience log, as an interface. Programs use the real file system; the simulator uses a disk in
// memory that can be full and loses what was not synced when a host crashes. Safe on any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::store {

// Errors name the file: kNoRoom if there is no space, kNotFound if a file to read is missing,
// otherwise kResources, also where a folder to write into is missing.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual bool exists(const std::filesystem::path& path) = 0;
  // Makes a folder and its parents, if they do not exist.
  virtual core::Result<void> make_folder(const std::filesystem::path& path) = 0;
  // Writes a whole file without syncing it.
  virtual core::Result<void> write_file(const std::filesystem::path& path,
                                        std::string_view content) = 0;
  // Returns the content of a file; empty if there is no such file.
  virtual core::Result<std::string> read_file(const std::filesystem::path& path) = 0;
  // Appends to a file, which is created if it does not exist, without syncing it. After an error
  // the file has its previous length.
  virtual core::Result<void> append(const std::filesystem::path& path,
                                    std::string_view content) = 0;
  // Syncs a file and its folder, so that content and name are on disk.
  virtual core::Result<void> sync(const std::filesystem::path& path) = 0;
  // Truncates a file to its first `bytes` bytes and syncs it.
  virtual core::Result<void> cut(const std::filesystem::path& path, std::uint64_t bytes) = 0;
  // Removes a file; no error if it does not exist.
  virtual core::Result<void> remove(const std::filesystem::path& path) = 0;
  // The names of the files in a folder, in no particular order; none if there is no such folder.
  virtual core::Result<std::vector<std::string>> list(const std::filesystem::path& folder) = 0;
  // The size of a file in bytes; 0 if there is no such file.
  virtual core::Result<std::uint64_t> size_of(const std::filesystem::path& path) = 0;
};

Disk& system_disk();

}  // namespace troupe::store
