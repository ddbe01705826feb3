#include "runtime/store/atomic_folder.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryPrefix = ".tmp-";

fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Syncs the files and folders below `folder` before `folder` itself, so that no folder entry is on
// disk before the content that it names.
Result<void> sync_tree(const fs::path& folder) {
  TROUPE_TRY_ASSIGN(entries, list_folder(folder));
  for (const fs::directory_entry& entry : entries)
    TROUPE_TRY(entry.is_directory() ? sync_tree(entry.path()) : sync_path(entry.path()));
  return sync_path(folder);
}

bool is_filled(const fs::path& target) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(target, error))) return false;
  return !fs::is_directory(target, error) || !fs::is_empty(target, error);
}

// Swaps the folders `temporary` and `target`. Returns 0 or an errno value.
int exchange(const fs::path& temporary, const fs::path& target) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // The file system cannot exchange: rename in steps; for a short moment there is no `target`.
  const fs::path aside = temporary.string() + ".old";
  if (::rename(target.c_str(), aside.c_str()) != 0) return errno;
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    const int reason = errno;
    if (::rename(aside.c_str(), target.c_str()) != 0) return errno;
    return reason;
  }
  return ::rename(aside.c_str(), temporary.c_str()) == 0 ? 0 : errno;
}

}  // namespace

Result<void> make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return io_failure("make folder", path, error.value());
  return {};
}

Result<AtomicFolder> AtomicFolder::begin(const fs::path& target) {
  static std::atomic<unsigned> next{0};  // only makes names differ within the process
  const fs::path place = without_slash(target);
  const fs::path parent = parent_of(place);
  TROUPE_TRY(make_folder(parent));
  const std::string name = std::string(kTemporaryPrefix) + std::to_string(::getpid()) + "-" +
                           std::to_string(next.fetch_add(1)) + "-" + place.filename().string();
  const fs::path temporary = parent / name;
  std::error_code error;
  fs::remove_all(temporary, error);
  if (::mkdir(temporary.c_str(), 0777) != 0) return io_failure("make folder", temporary, errno);
  return AtomicFolder(place, temporary);
}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : target_(std::move(other.target_)), temporary_(std::move(other.temporary_)) {
  other.temporary_.clear();
}

AtomicFolder::~AtomicFolder() {
  if (temporary_.empty()) return;
  std::error_code error;
  fs::remove_all(temporary_, error);
}

Result<void> AtomicFolder::commit(Existing existing) {
  TROUPE_CHECK(!temporary_.empty(), "commit of a folder that was committed or moved from");
  TROUPE_TRY(sync_tree(temporary_));
  const bool filled = is_filled(target_);
  if (filled && existing == Existing::kRefuse) {
    return core::fail(core::ErrorCode::kConfig, target_.string() + " exists and is not empty",
                      "remove it or choose another output folder");
  }
  if (!filled) {
    // rename(2) replaces an empty folder.
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
      return io_failure("put in place", target_, errno);
    temporary_.clear();
    return sync_path(parent_of(target_));
  }
  if (const int reason = exchange(temporary_, target_); reason != 0)
    return io_failure("replace", target_, reason);
  TROUPE_TRY(sync_path(parent_of(target_)));
  std::error_code error;
  fs::remove_all(temporary_, error);  // the old content; remove_leftovers removes any rest
  temporary_.clear();
  return {};
}

Result<int> remove_leftovers(const fs::path& parent) {
  TROUPE_TRY_ASSIGN(entries, list_folder(parent));
  int removed = 0;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kTemporaryPrefix)) continue;
    std::error_code error;
    fs::remove_all(entry.path(), error);
    if (error) return io_failure("remove", entry.path(), error.value());
    ++removed;
  }
  return removed;
}

Result<std::vector<fs::directory_entry>> list_folder(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  if (!fs::exists(folder, error)) return entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(*it);
  if (error) return io_failure("read folder", folder, error.value());
  return entries;
}

Result<void> write_file(const fs::path& path, std::string_view content) {
  TROUPE_TRY_ASSIGN(file, AppendFile::create(path));
  TROUPE_TRY(file.append(content));
  return file.close();
}

Result<void> replace_file(const fs::path& path, std::string_view content) {
  const fs::path temporary =
      path.parent_path() / (".tmp-" + std::to_string(::getpid()) + "-" + path.filename().string());
  auto written = write_file(temporary, content);
  if (written) written = sync_path(temporary);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = io_failure("replace", path, errno);
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  return sync_path(parent_of(path));
}

Result<void> copy_file(const fs::path& from, const fs::path& to) {
  const core::OwnedFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) return io_failure("open", from, errno);
  TROUPE_TRY_ASSIGN(out, AppendFile::create(to));
  std::string block(1 << 20, '\0');
  for (;;) {
    const ssize_t count = ::read(in.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure("read", from, errno);
    if (count == 0) return out.close();
    TROUPE_TRY(out.append({block.data(), static_cast<std::size_t>(count)}));
  }
}

Result<void> sync_path(const fs::path& path) {
  const core::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return io_failure("open", path, errno);
  if (::fsync(file.get()) != 0 && errno != EINVAL) return io_failure("sync", path, errno);
  return {};
}

}  // namespace troupe::store
