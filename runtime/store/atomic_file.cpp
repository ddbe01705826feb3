#include "runtime/store/atomic_file.hpp"

#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace troupe::store {

core::Result<void> replace_file(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary =
      path.parent_path() / (".tmp-" + std::to_string(::getpid()) + "-" + path.filename().string());
  auto written = write_file(temporary, content);
  if (written) written = sync_path(temporary);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = io_failure("replace", path, errno);
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  return sync_path(path.has_parent_path() ? path.parent_path() : ".");
}

}  // namespace troupe::store
