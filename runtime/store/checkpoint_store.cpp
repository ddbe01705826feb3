#include "runtime/store/checkpoint_store.hpp"

#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/checkpoint_manifest.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/sha256.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>
#include <utility>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::Result;

constexpr std::string_view kStepPrefix = "step_";

std::optional<std::uint64_t> step_of(const std::string& name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const char* begin = name.data() + kStepPrefix.size();
  const char* end = name.data() + name.size();
  std::uint64_t step = 0;
  const auto parsed = std::from_chars(begin, end, step);
  if (begin == end || parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return step;
}

// Adds what to do about a full disk, which is the way a save fails in practice.
core::Failure save_failure(const core::Error& error, const fs::path& target) {
  core::Error out = error.within("checkpoint " + target.string() + " was not saved");
  if (error.code == ErrorCode::kResources) {
    out.message +=
        "; lower --ckpt.max_num or move --run.path, then run again: it resumes from the "
        "last checkpoint";
  }
  return core::fail(std::move(out));
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, std::int64_t keep, Hook hook)
    : folder_(std::move(folder)), keep_(keep), hook_(std::move(hook)) {
  TROUPE_CHECK(keep >= 1, "at least one checkpoint must be kept");
}

void CheckpointStore::at(Stage stage) const {
  if (hook_) hook_(stage);
}

fs::path CheckpointStore::folder_of(std::uint64_t step) const {
  char name[32];
  std::snprintf(name, sizeof name, "step_%06llu", static_cast<unsigned long long>(step));
  return folder_ / name;
}

Result<AtomicFolder> CheckpointStore::begin(std::uint64_t step) const {
  auto folder = AtomicFolder::begin(folder_of(step));
  if (!folder) return save_failure(folder.error(), folder_of(step));
  at(Stage::kBegun);
  return folder;
}

Result<fs::path> CheckpointStore::commit(std::uint64_t step,
                                         AtomicFolder folder,
                                         const std::string& state_json) const {
  const fs::path target = folder_of(step);
  at(Stage::kWritten);
  auto manifest = make_manifest(folder.path(), step, state_json);
  if (!manifest) return save_failure(manifest.error(), target);
  auto done = write_file(folder.path() / kManifestName, *manifest);
  at(Stage::kHashed);
  if (done) done = folder.commit(AtomicFolder::Existing::kReplace);
  if (!done) return save_failure(done.error(), target);
  at(Stage::kCommitted);
  link_best();
  TROUPE_TRY(prune(step));
  at(Stage::kPruned);
  return target;
}

Result<fs::path> CheckpointStore::save(std::uint64_t step,
                                       const std::string& state_json,
                                       const Writer& writer) const {
  TROUPE_TRY_ASSIGN(folder, begin(step));
  if (auto done = writer(folder.path()); !done) {
    return save_failure(done.error(), folder_of(step));
  }
  return commit(step, std::move(folder), state_json);
}

Result<std::vector<std::uint64_t>> CheckpointStore::steps() const {
  std::vector<std::uint64_t> out;
  std::error_code error;
  if (!fs::exists(folder_, error)) return out;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    if (const auto step = step_of(it->path().filename().string())) out.push_back(*step);
  }
  if (error) return io_failure("read folder", folder_, error.value());
  std::sort(out.begin(), out.end());
  return out;
}

Result<CheckpointStore::Found> CheckpointStore::latest_valid() const {
  TROUPE_TRY_ASSIGN(all, steps());
  Found found;
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    auto checkpoint = verify_checkpoint(folder_of(*step));
    if (checkpoint && checkpoint->step != *step) {
      found.rejected.push_back(folder_of(*step).string() + " holds another step's manifest");
    } else if (checkpoint) {
      found.newest = std::move(checkpoint).value();
      break;
    } else {
      found.rejected.push_back(checkpoint.error().message);
    }
  }
  return found;
}

Result<void> CheckpointStore::clean() const {
  std::error_code error;
  if (!fs::exists(folder_, error)) return {};
  TROUPE_TRY(remove_leftovers(folder_));
  return {};
}

// A convenience for people; what it leads to is known without it.
void CheckpointStore::link_best() const {
  std::error_code ignored;
  if (!best_ || !fs::exists(folder_of(*best_), ignored)) return;
  const fs::path made = folder_ / ".tmp-best";
  fs::remove(made, ignored);
  fs::create_directory_symlink(folder_of(*best_).filename(), made, ignored);
  fs::rename(made, folder_ / "best", ignored);
}

Result<void> CheckpointStore::prune(std::uint64_t newest) const {
  TROUPE_TRY_ASSIGN(all, steps());
  // Steps after `newest` are leftovers of a future that was given up; they never count as kept.
  std::erase_if(all, [newest](std::uint64_t step) { return step > newest; });
  // The best one stays whatever its age, unless it is the newest, which stays anyway.
  if (best_ && *best_ != newest) std::erase(all, *best_);
  const auto keep = static_cast<std::size_t>(keep_);
  for (std::size_t i = 0; i + keep < all.size(); ++i) {
    // Renamed first: a removal that is cut short must not leave half a checkpoint with a good name.
    const fs::path old = folder_of(all[i]);
    const fs::path doomed = folder_ / (".tmp-removed-" + old.filename().string());
    std::error_code error;
    fs::remove_all(doomed, error);
    fs::rename(old, doomed, error);
    if (!error) fs::remove_all(doomed, error);
    if (error) return io_failure("remove old checkpoint", old, error.value());
  }
  return {};
}

Result<Checkpoint> verify_checkpoint(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return core::fail(ErrorCode::kData, folder.string() + " is no checkpoint folder");
  }
  TROUPE_TRY_ASSIGN(checkpoint, read_manifest(folder));
  for (const CheckpointFile& file : checkpoint.files) {
    const fs::path path = folder / file.path;
    const auto bytes = fs::file_size(path, error);
    if (error) return core::fail(ErrorCode::kData, path.string() + " is missing");
    if (bytes != file.bytes) {
      return core::fail(ErrorCode::kData, path.string() + " has " + std::to_string(bytes) +
                                              " bytes, the manifest says " +
                                              std::to_string(file.bytes));
    }
    TROUPE_TRY_ASSIGN(digest, sha256_file(path));
    if (digest.sha256 != file.sha256) {
      return core::fail(ErrorCode::kData,
                        path.string() + " is damaged: its SHA-256 is not the manifest's");
    }
  }
  return checkpoint;
}

}  // namespace troupe::store
