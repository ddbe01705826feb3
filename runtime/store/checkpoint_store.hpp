// Writes, finds and prunes the checkpoints of a run: folders ckpt/step_000010, each written
// atomically. A checkpoint holds the roles' files and a manifest.json with the size and SHA-256 of
// every file, so that loading detects damage and falls back to an older checkpoint. Old checkpoints
// are removed only after a new one is on disk. Used by one thread that holds the run folder's lock.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/written_files.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::store {

struct Checkpoint {
  std::filesystem::path folder;
  std::uint64_t step = 0;  // updates done
  std::string state_json;  // the JSON object that was given to `commit`
  std::vector<CheckpointFile> files;
};

class CheckpointStore {
 public:
  // Points within `begin` and `commit` at which the hook is called; tests kill the process there.
  enum class Stage { kBegun, kWritten, kHashed, kCommitted, kPruned };
  using Hook = std::function<void(Stage)>;

  // `folder` is ckpt/ of the run folder. The newest `keep` >= 1 checkpoints are kept, and the best.
  CheckpointStore(std::filesystem::path folder, std::int64_t keep, Hook hook = {});

  // Makes the temporary folder for the checkpoint of `step`; the roles write their parts into it.
  core::Result<AtomicFolder> begin(std::uint64_t step) const;
  // Writes the manifest, syncs the folder, renames it into place (replacing a checkpoint of the
  // same step), and removes old checkpoints. Returns the checkpoint's folder. `state_json` is a
  // JSON object. A file that its writer has hashed (written_files.hpp) is not read again: it must
  // be there with its size, else kData. Errors: kNoRoom, kResources, kInvalidArgument; older
  // checkpoints stay intact.
  core::Result<std::filesystem::path> commit(std::uint64_t step,
                                             AtomicFolder folder,
                                             const std::string& state_json) const;

  struct Found {
    std::optional<Checkpoint> newest;   // the newest undamaged one
    std::vector<std::string> rejected;  // what is wrong with each newer one, newest first
  };
  // Verifies checkpoints from the newest on until one is undamaged.
  core::Result<Found> latest_valid() const;

  // The steps that have a checkpoint folder, ascending. The folders are not verified.
  core::Result<std::vector<std::uint64_t>> steps() const;

  // The newest step whose folder has its manifest and files of the sizes that it names; nothing
  // when there is none. Does not read the files.
  core::Result<std::optional<std::uint64_t>> latest_listed() const;

  // Gives the checkpoints from `step` on other names (ckpt/diverged_000010), so that nothing goes
  // on from them; one that had such a name before is removed, and of all those the newest `keep`
  // are kept.
  core::Result<void> set_aside_from(std::uint64_t step) const;

  // Marks the step of the best checkpoint, which is kept in addition to the newest ones until
  // another step is marked. `commit` then makes ckpt/best a link to it.
  void keep_also(std::optional<std::uint64_t> step) { best_ = step; }

  // Removes the temporary folders of writers that crashed.
  core::Result<void> clean() const;

  std::filesystem::path folder_of(std::uint64_t step) const;

 private:
  core::Result<void> prune(std::uint64_t newest) const;
  core::Result<void> prune_aside() const;
  std::filesystem::path aside_of(std::uint64_t step) const;
  void link_best() const;
  void at(Stage stage) const;

  std::filesystem::path folder_;
  std::int64_t keep_;
  Hook hook_;
  std::optional<std::uint64_t> best_;
};

// Reads the manifest and checks the size and SHA-256 of every file against it. Error kData says
// which file differs and how.
core::Result<Checkpoint> verify_checkpoint(const std::filesystem::path& folder);

}  // namespace troupe::store
