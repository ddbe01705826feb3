// A folder of our own in the system's temporary folder, removed with its owner.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string>
#include <utility>

namespace troupe::app {

class TemporaryFolder {
 public:
  // TMP/NAME-XXXXXX. Error: kResources.
  static core::Result<TemporaryFolder> make(const std::string& name);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace troupe::app
