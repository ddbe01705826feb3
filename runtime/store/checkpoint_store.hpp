// Checkpoints of a run: folders ckpt/step_000010 that appear whole or not at all. Each holds what
// the writer put there and a manifest.json with byte counts and SHA-256 of every file, so that
// damage is found on loading and an older checkpoint is taken instead. Old ones go only after a new
// one is safe. Owned by the run; one thread, while it holds the run folder's lock.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::store {

struct CheckpointFile {
  std::string path;  // within the checkpoint, with '/'
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct Checkpoint {
  std::filesystem::path folder;
  std::uint64_t step = 0;  // updates done
  std::string state_json;  // what the saver gave: cursors, counters
  std::vector<CheckpointFile> files;
};

class CheckpointStore {
 public:
  // Stages of `save`, for tests that end the process there.
  enum class Stage { kBegun, kWritten, kHashed, kCommitted, kPruned };
  using Hook = std::function<void(Stage)>;
  // Fills the (temporary) folder.
  using Writer = std::function<core::Result<void>(const std::filesystem::path& folder)>;

  // `folder` is run/ckpt; at most `keep` >= 1 checkpoints stay.
  CheckpointStore(std::filesystem::path folder, std::int64_t keep, Hook hook = {});

  // Makes the temporary folder for the checkpoint of `step`; the owners of its parts write there.
  core::Result<AtomicFolder> begin(std::uint64_t step) const;
  // Hashes, syncs and commits it; one of the same step is replaced. `state_json` is a JSON object.
  // An error (no space: kResources) leaves what was there.
  core::Result<std::filesystem::path> commit(std::uint64_t step,
                                             AtomicFolder folder,
                                             const std::string& state_json) const;
  // Calls `begin`, `writer` and `commit`.
  core::Result<std::filesystem::path> save(std::uint64_t step,
                                           const std::string& state_json,
                                           const Writer& writer) const;

  struct Found {
    std::optional<Checkpoint> newest;   // the newest that is whole
    std::vector<std::string> rejected;  // why newer ones were passed over, newest first
  };
  core::Result<Found> latest_valid() const;

  // The steps that have a folder, ascending; not verified.
  core::Result<std::vector<std::uint64_t>> steps() const;

  // Marks the best checkpoint's step. It is kept in addition to the newest ones until another is
  // marked; ckpt/best is a link to it once it exists.
  void keep_also(std::optional<std::uint64_t> step) { best_ = step; }

  // Removes temporary folders that crashed writers left.
  core::Result<void> clean() const;

  std::filesystem::path folder_of(std::uint64_t step) const;

 private:
  core::Result<void> prune(std::uint64_t newest) const;
  void link_best() const;
  void at(Stage stage) const;

  std::filesystem::path folder_;
  std::int64_t keep_;
  Hook hook_;
  std::optional<std::uint64_t> best_;
};

// Reads the manifest and checks every file against it. Error kData says which file and how it
// differs.
core::Result<Checkpoint> verify_checkpoint(const std::filesystem::path& folder);

}  // namespace troupe::store
