#include "apps/cli/part_file.hpp"

#include "runtime/data/table_reader.hpp"
#include "runtime/names/locate.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/sha256.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace troupe::cli {
namespace {

namespace fs = std::filesystem;

fs::path part_of(const fs::path& out) {
  return fs::path(out.string() + ".part");
}
fs::path settings_of(const fs::path& out) {
  return fs::path(out.string() + ".part.json");
}

std::string settings_json(const PartSettings& settings) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : settings)
    object[name] = value;
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<void> check_same(const fs::path& out, const PartSettings& settings) {
  TROUPE_TRY_ASSIGN(text, store::read_all(settings_of(out)));
  const auto old = nlohmann::json::parse(text, nullptr, false);
  std::string differing;
  const auto add = [&](const std::string& name) {
    differing += (differing.empty() ? "" : ", ") + name;
  };
  if (!old.is_object()) {
    add("its description, which is damaged");
  } else {
    const auto now = nlohmann::json::parse(settings_json(settings));
    for (const auto& [name, value] : now.items()) {
      if (!old.contains(name) || old[name] != value) add(name);
    }
    for (const auto& [name, value] : old.items()) {
      if (!now.contains(name)) add(name);
    }
  }
  if (differing.empty()) return {};
  return fail(
      ErrorCode::kConfig,
      part_of(out).string() + " was begun with other settings (they differ in: " + differing + ")",
      "give the settings it was begun with, another --out, or --overwrite to begin anew");
}

// Length in bytes and number of the complete bundles at the beginning of `text`.
std::pair<std::uint64_t, std::uint64_t> whole_bundles(const std::string& text,
                                                      std::uint64_t bundle) {
  std::uint64_t lines = 0, bundles = 0, length = 0;
  for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', end + 1)) {
    if (++lines % bundle != 0) continue;
    ++bundles;
    length = end + 1;
  }
  return {length, bundles};
}

void remove_file(const fs::path& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
}

}  // namespace

Result<PartFile> PartFile::open(const fs::path& out,
                                const PartSettings& settings,
                                std::uint64_t bundle,
                                bool overwrite) {
  std::error_code error;
  if (out.has_parent_path()) fs::create_directories(out.parent_path(), error);
  if (fs::is_directory(out, error))
    return fail(ErrorCode::kConfig, "--out " + out.string() + " is a folder", "name a .jsonl file");
  if (fs::exists(out, error) && !overwrite) {
    return fail(ErrorCode::kConfig, "--out " + out.string() + " is there already",
                "choose another, or --overwrite");
  }
  const fs::path part = part_of(out);
  core::OwnedFd lock(::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!lock) return store::io_failure("open", part, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::kResources, part.string() + " is being written by another process",
                "wait for it, or choose another --out");
  }
  std::uint64_t bundles = 0;
  // The settings of an empty part need no comparison.
  const bool begun =
      !overwrite && fs::exists(settings_of(out), error) && fs::file_size(part, error) > 0;
  if (begun) {
    TROUPE_TRY(check_same(out, settings));
    TROUPE_TRY_ASSIGN(text, store::read_all(part));
    const auto [length, count] = whole_bundles(text, bundle);
    TROUPE_TRY(store::cut_file(part, length));
    bundles = count;
  } else {
    TROUPE_TRY(store::cut_file(part, 0));
    TROUPE_TRY(store::replace_file(settings_of(out), settings_json(settings)));
  }
  TROUPE_TRY_ASSIGN(file, store::AppendFile::open(part));
  return PartFile(out, std::move(file), std::move(lock), bundles);
}

PartFile::PartFile(fs::path out, store::AppendFile file, core::OwnedFd lock, std::uint64_t bundles)
    : out_(std::move(out)), file_(std::move(file)), lock_(std::move(lock)), bundles_(bundles) {}

Result<void> PartFile::append(std::string_view lines, std::uint64_t bundles) {
  TROUPE_TRY(file_.append(lines));
  bundles_ += bundles;
  return {};
}

Result<std::string> PartFile::content() const {
  return store::read_all(part_of(out_));
}

Result<void> PartFile::finish() {
  TROUPE_TRY(file_.sync());
  std::error_code error;
  fs::rename(part_of(out_), out_, error);
  if (error) return store::io_failure("rename", part_of(out_), error.value());
  remove_settings();
  return {};
}

Result<void> PartFile::finish(std::string_view content) {
  TROUPE_TRY(store::replace_file(out_, content));
  remove_file(part_of(out_));
  remove_settings();
  return {};
}

void PartFile::remove_settings() const {
  remove_file(settings_of(out_));
}

Result<std::string> file_identity(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return fail(ErrorCode::kNotFound, file.string() + ": no such file");
  TROUPE_TRY_ASSIGN(digest, store::sha256_file(file));
  return file.string() + " (" + std::to_string(digest.bytes) + " bytes, sha256 " +
         digest.sha256.substr(0, 16) + ")";
}

Result<std::string> files_identity(const std::string& files) {
  std::string out;
  TROUPE_TRY_ASSIGN(all, data::files_of_sets(files));
  for (const std::string& file : all) {
    TROUPE_TRY_ASSIGN(one, file_identity(file));
    out += (out.empty() ? "" : ", ") + one;
  }
  return out;
}

std::string model_identity(const fs::path& folder) {
  std::vector<std::string> parts;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const bool counts =
        name.ends_with(".safetensors") || name.ends_with(".json") || name.ends_with(".jinja");
    if (!counts) continue;
    const auto time = fs::last_write_time(it->path(), error).time_since_epoch().count();
    parts.push_back(name + ":" + std::to_string(fs::file_size(it->path(), error)) + ":" +
                    std::to_string(time));
  }
  std::sort(parts.begin(), parts.end());
  std::string all;
  for (const std::string& part : parts)
    all += part + "\n";
  return folder.string() + " (" + store::sha256_text(all).substr(0, 16) + ")";
}

}  // namespace troupe::cli
