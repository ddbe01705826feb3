#include "runtime/store/checkpoint_store.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/run_folder.hpp"
#include "runtime/store/sha256.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kManifestName = "manifest.json";
constexpr const char* kAside = "diverged_";
constexpr int kFormat = 1;
constexpr std::uint64_t kManifest_bytes_max = 16u << 20;
constexpr const char* kOwnHash = "sha256";  // of the manifest without this entry

// True if `path` is relative and cannot lead out of the checkpoint's folder.
bool is_inside(const std::string& path) {
  const fs::path relative(path);
  return !path.empty() && relative.is_relative() &&
         std::none_of(relative.begin(), relative.end(),
                      [](const fs::path& part) { return part == ".." || part == "."; });
}

// The files below `folder`, by their paths; the folders' lists of written files are not among them.
Result<std::vector<std::string>> files_below(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file() || it->path().filename() == kWrittenFiles) continue;
    paths.push_back(fs::relative(it->path(), folder).generic_string());
  }
  if (error) return io_failure("read folder", folder, error.value());
  std::erase(paths, kManifestName);
  std::sort(paths.begin(), paths.end());
  return paths;
}

// What the folder and its subfolders have noted of their files, by path.
Result<std::map<std::string, CheckpointFile>> take_noted(const fs::path& folder) {
  std::vector<fs::path> folders{folder};
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error))
    if (it->is_directory()) folders.push_back(it->path());
  if (error) return io_failure("read folder", folder, error.value());
  std::map<std::string, CheckpointFile> noted;
  for (const fs::path& one : folders) {
    TROUPE_TRY_ASSIGN(files, take_written(one));
    for (CheckpointFile& file : files) {
      file.path = fs::relative(one / file.path, folder).generic_string();
      noted.insert_or_assign(file.path, file);
    }
  }
  return noted;
}

core::Failure unlike_written(const fs::path& path, std::uint64_t written, const std::string& now) {
  return fail(ErrorCode::kData,
              path.string() + " was written with " + std::to_string(written) + " bytes and " + now,
              "all hosts whose roles have a state must share the folder of --run.path");
}

// The manifest's text. Hashes what its writers have not hashed.
Result<std::string> make_manifest(const fs::path& folder,
                                  std::uint64_t step,
                                  const std::string& state_json) {
  TROUPE_TRY_ASSIGN(noted, take_noted(folder));
  TROUPE_TRY_ASSIGN(paths, files_below(folder));
  Json files = Json::array();
  for (const std::string& path : paths) {
    FileDigest digest;
    if (const auto known = noted.find(path); known != noted.end()) {
      digest = {known->second.bytes, known->second.sha256};
      noted.erase(known);
      std::error_code error;
      const auto bytes = fs::file_size(folder / path, error);
      if (error) return io_failure("look at", folder / path, error.value());
      if (bytes != digest.bytes)
        return unlike_written(folder / path, digest.bytes, "has " + std::to_string(bytes));
    } else {
      TROUPE_TRY_SET(digest, sha256_file(folder / path));
    }
    files.push_back({{"path", path}, {"bytes", digest.bytes}, {"sha256", digest.sha256}});
  }
  if (!noted.empty()) {
    const CheckpointFile& lost = noted.begin()->second;
    return unlike_written(folder / lost.path, lost.bytes, "is not there");
  }
  Json state = Json::parse(state_json, nullptr, false);
  if (!state.is_object())
    return fail(ErrorCode::kInvalidArgument, "a checkpoint's state must be a JSON object");
  Json manifest = {{"format", kFormat},
                   {"step", step},
                   {"state", std::move(state)},
                   {"files", std::move(files)}};
  manifest[kOwnHash] = sha256_text(manifest.dump(1));
  return manifest.dump(1) + "\n";
}

// Whether the manifest is as it was written. One that has no hash of its own, as they were written
// before, has nothing but the rest.
bool is_whole(Json manifest) {
  const auto own = manifest.find(kOwnHash);
  if (own == manifest.end()) return manifest.size() == 4;
  const Json hash = *own;
  manifest.erase(own);
  return hash == sha256_text(manifest.dump(1));
}

// Reads the manifest, at most kManifest_bytes_max of it. Does not open the files that it names.
Result<Checkpoint> read_manifest(const fs::path& folder) {
  const fs::path file = folder / kManifestName;
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  if (error) return fail(ErrorCode::kData, file.string() + " is missing");
  if (bytes > kManifest_bytes_max) return fail(ErrorCode::kData, file.string() + " is too large");
  TROUPE_TRY_ASSIGN(text, read_all(file));
  try {
    const Json manifest = Json::parse(text);
    if (manifest.at("format").get<int>() != kFormat)
      return fail(ErrorCode::kData, file.string() + " has a format of another version");
    if (!is_whole(manifest))
      return fail(ErrorCode::kData,
                  file.string() + " is damaged: its SHA-256 is not the one that it names");
    Checkpoint out;
    out.folder = folder;
    out.step = manifest.at("step").get<std::uint64_t>();
    out.state_json = manifest.at("state").dump();
    for (const Json& entry : manifest.at("files")) {
      CheckpointFile item{entry.at("path").get<std::string>(),
                          entry.at("bytes").get<std::uint64_t>(),
                          entry.at("sha256").get<std::string>()};
      if (!is_inside(item.path))
        return fail(ErrorCode::kData, file.string() + " names a file outside the checkpoint");
      out.files.push_back(std::move(item));
    }
    return out;
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::kData, file.string() + " is damaged");
  }
}

// Error kData: a file is missing, or has another size.
Result<void> check_sizes(const Checkpoint& checkpoint) {
  for (const CheckpointFile& file : checkpoint.files) {
    const fs::path path = checkpoint.folder / file.path;
    std::error_code error;
    const auto bytes = fs::file_size(path, error);
    if (error) return fail(ErrorCode::kData, path.string() + " is missing");
    if (bytes != file.bytes) {
      return fail(ErrorCode::kData, path.string() + " has " + std::to_string(bytes) +
                                        " bytes, the manifest says " + std::to_string(file.bytes));
    }
  }
  return {};
}

// The error of a failed save; if space may have run out, with advice on how to get more.
core::Failure save_failure(const core::Error& error, const fs::path& target) {
  core::Error out = error.within("checkpoint " + target.string() + " was not saved");
  if (error.code == ErrorCode::kNotFound) out.code = ErrorCode::kResources;  // a folder is gone
  if (error.code == ErrorCode::kResources || error.code == ErrorCode::kNoRoom) {
    out = out.advising(
        "lower --ckpt.max_num or move --run.path, then run again: it resumes from the last "
        "checkpoint");
  }
  return fail(std::move(out));
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
  return folder_ / step_name(step);
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

Result<std::vector<std::uint64_t>> CheckpointStore::steps() const {
  TROUPE_TRY_ASSIGN(entries, list_folder(folder_));
  std::vector<std::uint64_t> out;
  for (const fs::directory_entry& entry : entries) {
    if (const auto step = step_of(entry.path().filename().string())) out.push_back(*step);
  }
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

Result<std::optional<std::uint64_t>> CheckpointStore::latest_listed() const {
  TROUPE_TRY_ASSIGN(all, steps());
  for (auto step = all.rbegin(); step != all.rend(); ++step) {
    const auto checkpoint = read_manifest(folder_of(*step));
    if (checkpoint && checkpoint->step == *step && check_sizes(*checkpoint))
      return std::optional(*step);
  }
  return std::optional<std::uint64_t>();
}

Result<void> CheckpointStore::set_aside_from(std::uint64_t step) const {
  TROUPE_TRY_ASSIGN(all, steps());
  for (const std::uint64_t one : all) {
    if (one < step) continue;
    const fs::path from = folder_of(one);
    const fs::path to = aside_of(one);
    std::error_code error;
    fs::remove_all(to, error);
    fs::rename(from, to, error);
    if (error) return io_failure("rename the checkpoint", from, error.value());
  }
  return prune_aside();
}

fs::path CheckpointStore::aside_of(std::uint64_t step) const {
  const std::string name = step_name(step);
  return folder_ / (kAside + name.substr(name.rfind('_') + 1));
}

// Removes the oldest of those that were set aside; as many are kept as of the others.
Result<void> CheckpointStore::prune_aside() const {
  TROUPE_TRY_ASSIGN(entries, list_folder(folder_));
  std::vector<std::uint64_t> aside;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kAside)) continue;
    if (const auto step = step_of("step_" + name.substr(name.rfind('_') + 1)))
      aside.push_back(*step);
  }
  std::sort(aside.begin(), aside.end());
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < aside.size(); ++i) {
    std::error_code error;
    fs::remove_all(aside_of(aside[i]), error);
    if (error) return io_failure("remove the checkpoint", aside_of(aside[i]), error.value());
  }
  return {};
}

Result<void> CheckpointStore::clean() const {
  TROUPE_TRY(remove_leftovers(folder_));
  return {};
}

// Points the symbolic link ckpt/best at the best checkpoint. It is for people; no code reads it.
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
  // A checkpoint after `newest` was rejected as damaged when the run resumed from an older one. It
  // is neither counted nor removed here.
  std::erase_if(all, [newest](std::uint64_t step) { return step > newest; });
  // The best one is kept in addition to the newest `keep_`.
  if (best_ && *best_ != newest) std::erase(all, *best_);
  const auto keep = static_cast<std::size_t>(keep_);
  for (std::size_t i = 0; i + keep < all.size(); ++i) {
    // Rename it first: a crash during the removal must not leave half a checkpoint under this name.
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
  if (!fs::is_directory(folder, error))
    return fail(ErrorCode::kData, folder.string() + " is not a checkpoint folder");
  TROUPE_TRY_ASSIGN(checkpoint, read_manifest(folder));
  TROUPE_TRY(check_sizes(checkpoint));
  for (const CheckpointFile& file : checkpoint.files) {
    const fs::path path = folder / file.path;
    TROUPE_TRY_ASSIGN(digest, sha256_file(path));
    if (digest.sha256 != file.sha256) {
      return fail(ErrorCode::kData,
                  path.string() + " is damaged: its SHA-256 is not the manifest's");
    }
  }
  return checkpoint;
}

}  // namespace troupe::store
