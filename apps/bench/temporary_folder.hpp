// A new folder in the system's temporary folder; the destructor removes it with its content.
#pragma once

#include "runtime/core/result.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::bench {

class TemporaryFolder {
 public:
  // Makes TMP/NAME-XXXXXX, with random letters for the X. Error: kResources.
  static core::Result<TemporaryFolder> make(const std::string& name) {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / (name + "-XXXXXX")).string();
    if (!error && ::mkdtemp(path.data()) != nullptr) return TemporaryFolder(path);
    const std::string reason = error ? error.message() : std::strerror(errno);
    return core::fail(core::ErrorCode::kResources,
                      "cannot make a temporary folder " + path + ": " + reason);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace troupe::bench
