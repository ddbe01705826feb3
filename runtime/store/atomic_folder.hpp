// A folder that appears whole or not at all: files are written into a temporary folder beside the
// target, everything is synced to disk, then one rename puts it in place. A crash at any moment
// leaves the old state and perhaps a temporary folder, never half a target. replace_file does the
// same for one file; below are the helpers for files and folders that both use.
// Owned by one writer, one thread. Errors carry the path and what to do (see io_error.hpp).
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string_view>
#include <vector>

namespace troupe::store {

class AtomicFolder {
 public:
  // Makes the temporary folder `.tmp-<pid>-<n>-<name>` beside `target`, and the parents of both.
  static core::Result<AtomicFolder> begin(const std::filesystem::path& target);

  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  ~AtomicFolder();  // not committed: the temporary folder is removed

  // Where to write.
  const std::filesystem::path& path() const { return temporary_; }

  // What `commit` does when the target is there and not empty.
  enum class Existing { kRefuse, kReplace };

  // Syncs all files and folders and puts the folder in its place. kReplace swaps in one step where
  // the system can, then removes the old folder. After an error the old target still stands.
  core::Result<void> commit(Existing existing = Existing::kRefuse);

 private:
  AtomicFolder(std::filesystem::path target, std::filesystem::path temporary)
      : target_(std::move(target)), temporary_(std::move(temporary)) {}
  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty once committed or moved from
};

// Removes temporary folders that writers of earlier processes left in `parent`. Only for a caller
// that alone writes there (it holds the run folder's lock). Returns how many went.
core::Result<int> remove_leftovers(const std::filesystem::path& parent);

// What a folder holds, in no order; nothing when there is no such folder.
core::Result<std::vector<std::filesystem::directory_entry>> list_folder(
    const std::filesystem::path& folder);
// Makes a folder and its parents, where they are not there.
core::Result<void> make_folder(const std::filesystem::path& path);
// Writes a whole file, not yet synced; `commit` or `sync_path` does that.
core::Result<void> write_file(const std::filesystem::path& path, std::string_view content);
// Replaces a file's content atomically: a reader, or a crash, finds the old or the new content.
// Uses a temporary file beside it, fsync, rename, fsync of the folder.
core::Result<void> replace_file(const std::filesystem::path& path, std::string_view content);
core::Result<void> copy_file(const std::filesystem::path& from, const std::filesystem::path& to);
// fsync of one file or folder.
core::Result<void> sync_path(const std::filesystem::path& path);

}  // namespace troupe::store
