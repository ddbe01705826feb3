// How many files and connections this process may have open, and how many of them connections from
// outside may take: a share for each kind, and none of the last few, which are kept for files. Any
// thread.
#pragma once

#include <cstdint>

namespace troupe::core {

// Raises the soft limit of open files, often 1024, to the hard limit.
void raise_open_files_max() noexcept;
// The soft limit.
std::uint64_t open_files_max() noexcept;

// What one kind of connections may take: `most`, or a quarter of `limit` if that is less.
constexpr std::uint64_t share_of_files(std::uint64_t most, std::uint64_t limit) {
  const std::uint64_t quarter = limit / 4 > 0 ? limit / 4 : 1;
  return most < quarter ? most : quarter;
}
inline std::uint64_t share_of_files(std::uint64_t most) {
  return share_of_files(most, open_files_max());
}

// How many of `limit` are kept for files and for what the program itself connects to.
constexpr std::uint64_t kept_for_files(std::uint64_t limit) {
  const std::uint64_t quarter = limit / 4;
  return quarter < 16 ? 16 : quarter > 64 ? 64 : quarter;
}
// True while more are free than are kept for files, so that a connection from outside may be taken.
// `open`: any descriptor that is open.
bool has_room_for_strangers(int open) noexcept;

}  // namespace troupe::core
