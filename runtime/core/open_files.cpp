#include "runtime/core/open_files.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace troupe::core {

void raise_open_files_max() noexcept {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::uint64_t open_files_max() noexcept {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

// A new descriptor gets the lowest number that is free, so at least as many others are open.
bool has_room_for_strangers(int open) noexcept {
  const int lowest = ::fcntl(open, F_DUPFD_CLOEXEC, 0);
  if (lowest < 0) return false;
  ::close(lowest);
  const std::uint64_t limit = open_files_max();
  return static_cast<std::uint64_t>(lowest) + kept_for_files(limit) < limit;
}

}  // namespace troupe::core
