#include "apps/bench/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace troupe::app {

core::Result<TemporaryFolder> TemporaryFolder::make(const std::string& name) {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / (name + "-XXXXXX")).string();
  if (!error && ::mkdtemp(path.data()) != nullptr) return TemporaryFolder(path);
  const std::string reason = error ? error.message() : std::strerror(errno);
  return core::fail(core::ErrorCode::kResources,
                    "cannot make a temporary folder " + path + ": " + reason);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace troupe::app
