// Writes a folder atomically: the caller fills a temporary folder next to it, `commit` syncs
// it to disk and renames it into place. A crash leaves the old or the new target, and perhaps a
// temporary folder, but never half a target. `replace_file` does the same for one file. Also plain
// helpers for files and folders. One thread uses an AtomicFolder. Errors name the path and say what
// to do (io_error.hpp).
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

namespace troupe::store {

class AtomicFolder {
 public:
  // Makes the temporary folder `.tmp-<pid>-<n>-<name>` next to `target`, and its parent folders.
  static core::Result<AtomicFolder> begin(const std::filesystem::path& target);

  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  ~AtomicFolder();  // removes the temporary folder unless it was committed

  // The temporary folder, into which the caller writes.
  const std::filesystem::path& path() const { return temporary_; }

  // What `commit` does if the target exists and is not empty.
  enum class Existing { kRefuse, kReplace };

  // Syncs all files and folders, then renames the temporary folder to the target. kReplace
  // exchanges the two in one step if the file system can, then removes the old folder. After an
  // error the target is the old one; if only the last sync failed, it is the new one.
  core::Result<void> commit(Existing existing = Existing::kRefuse);

 private:
  AtomicFolder(std::filesystem::path target, std::filesystem::path temporary)
      : target_(std::move(target)), temporary_(std::move(temporary)) {}
  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty once committed or moved from
};

// Removes the temporary folders and files that earlier processes left in `parent`, and returns
// their number. The caller must be the only writer there (it holds the run folder's lock).
core::Result<int> remove_leftovers(const std::filesystem::path& parent);

// The entries of a folder, in no particular order; none if there is no such folder.
core::Result<std::vector<std::filesystem::directory_entry>> list_folder(
    const std::filesystem::path& folder);
// Makes a folder and its parents, if they do not exist.
core::Result<void> make_folder(const std::filesystem::path& path);
// Writes a whole file without syncing it; `commit` or `sync_path` syncs it.
core::Result<void> write_file(const std::filesystem::path& path, std::string_view content);
// Replaces a file's content atomically: readers, also those after a crash, find the old or the new
// content. Writes and syncs a temporary file next to it, renames that, and syncs the folder.
core::Result<void> replace_file(const std::filesystem::path& path, std::string_view content);
// Copies the content; the new file's mode follows from the umask, not from the old one's.
core::Result<void> copy_file(const std::filesystem::path& from, const std::filesystem::path& to);
// fsync of one file or folder.
core::Result<void> sync_path(const std::filesystem::path& path);

}  // namespace troupe::store
