#include "apps/troupe/new_file.hpp"

#include "runtime/core/owned_fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace troupe::app {

using core::ErrorCode;

core::Result<void> check_new(const std::string& out, std::string_view flag) {
  std::error_code error;
  if (out.empty() || !std::filesystem::exists(std::filesystem::symlink_status(out, error)))
    return {};
  return core::fail(ErrorCode::kConfig, std::string(flag) + ": " + out + " is there already",
                    "give another name, or remove it");
}

core::Result<void> write_new(const std::string& out,
                             std::string_view flag,
                             const std::string& text) {
  if (out.empty()) {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  TROUPE_TRY(check_new(out, flag));
  const core::OwnedFd file(::open(out.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  const auto size = static_cast<ssize_t>(text.size());
  if (file.get() >= 0 && ::write(file.get(), text.data(), text.size()) == size) return {};
  const std::string why = std::strerror(errno);
  if (file.get() >= 0) ::unlink(out.c_str());
  return core::fail(ErrorCode::kResources, std::string(flag) + ": cannot write " + out + ": " + why,
                    "give a folder that is there and has room");
}

}  // namespace troupe::app
