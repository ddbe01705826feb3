// The files that roles write and read themselves: their parts of a checkpoint. A process has the
// system's disk; the simulator has one in memory, which can be full and loses what was not synced.
// Safe on any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::store {

class Disk {
 public:
  virtual ~Disk() = default;
  virtual bool exists(const std::filesystem::path& path) = 0;
  // Makes a folder and its parents, where they are not there.
  virtual core::Result<void> make_folder(const std::filesystem::path& path) = 0;
  // Writes a whole file, not yet synced. Error: kResources, naming the file.
  virtual core::Result<void> write_file(const std::filesystem::path& path,
                                        std::string_view content) = 0;
  // The whole file, empty when there is none.
  virtual core::Result<std::string> read_file(const std::filesystem::path& path) = 0;
};

Disk& system_disk();

}  // namespace troupe::store
