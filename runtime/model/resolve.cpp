// Resolves the model that a user names to a folder: a path, a run or one of its checkpoints, or
// org/name in the local hub cache. Nothing is downloaded.
#include "runtime/model/spec.hpp"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using core::Result;

fs::path environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

// $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME or ~/.cache + huggingface/hub.
fs::path hub_cache() {
  if (const fs::path cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const fs::path home = environment("HF_HOME"); !home.empty()) return home / "hub";
  if (const fs::path xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) {
    return xdg / "huggingface" / "hub";
  }
  return environment("HOME") / ".cache" / "huggingface" / "hub";
}

bool is_hub_name(const std::string& name) {
  const auto slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == name.size()) return false;
  if (name.find('/', slash + 1) != std::string::npos || name.find("..") != std::string::npos) {
    return false;
  }
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.' &&
        c != '/') {
      return false;
    }
  }
  return name[0] != '.';
}

bool has_config(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "config.json", error);
}

std::optional<fs::path> main_snapshot(const fs::path& repository) {
  std::ifstream file(repository / "refs" / "main");
  std::string commit;
  if (!(file >> commit) || commit.find('/') != std::string::npos) return std::nullopt;
  const fs::path folder = repository / "snapshots" / commit;
  if (!has_config(folder)) return std::nullopt;
  return folder;
}

std::optional<fs::path> newest_snapshot(const fs::path& repository) {
  std::optional<fs::path> newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (fs::directory_iterator it(repository / "snapshots", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code time_error;
    const auto time = fs::last_write_time(it->path(), time_error);
    if (time_error || !has_config(it->path())) continue;
    if (!newest || time > newest_time) {
      newest = it->path();
      newest_time = time;
    }
  }
  return newest;
}

// The number of a checkpoint's folder, "step_000010"; nullopt for another name.
std::optional<std::uint64_t> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  std::uint64_t step = 0;
  const char* const end = name.data() + name.size();
  if (!name.starts_with("step_")) return std::nullopt;
  const auto read = std::from_chars(name.data() + 5, end, step);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return step;
}

// What a folder that is no model itself holds: a checkpoint's model, or that of a run's newest
// checkpoint that has one. The folder itself if it is neither.
Result<fs::path> model_within(const fs::path& folder) {
  if (has_config(folder)) return folder;
  if (has_config(folder / "model")) return folder / "model";
  std::error_code error;
  const fs::path checkpoints = folder / "ckpt";
  if (!fs::is_directory(checkpoints, error)) return folder;
  std::optional<std::uint64_t> newest;
  fs::path found;
  for (fs::directory_iterator it(checkpoints, error), end; !error && it != end;
       it.increment(error)) {
    const auto step = step_of(it->path());
    if (!step || (newest && *step < *newest) || !has_config(it->path() / "model")) continue;
    newest = step;
    found = it->path() / "model";
  }
  if (newest) return found;
  return core::fail(core::ErrorCode::kNotFound,
                    "the run " + folder.string() +
                        " has no model in ckpt/ yet: the last checkpoint of a run that has ended "
                        "has one",
                    "name a model folder");
}

}  // namespace

Result<fs::path> resolve_model(const std::string& name_or_path) {
  std::error_code error;
  fs::path path(name_or_path);
  if (name_or_path == "~" || name_or_path.rfind("~/", 0) == 0) {
    path = environment("HOME") / name_or_path.substr(name_or_path.size() > 1 ? 2 : 1);
  }
  if (fs::is_directory(path, error)) return model_within(path);
  if (fs::exists(path, error)) {
    return core::fail(core::ErrorCode::kNotFound, name_or_path + " is a file",
                      "a model is a folder with config.json and model.safetensors");
  }
  if (!is_hub_name(name_or_path)) {
    return core::fail(core::ErrorCode::kNotFound, "no model folder at " + name_or_path);
  }
  std::string folder_name = "models--" + name_or_path;
  folder_name.replace(folder_name.find('/'), 1, "--");
  const fs::path repository = hub_cache() / folder_name;
  if (auto folder = main_snapshot(repository)) return *folder;
  if (auto folder = newest_snapshot(repository)) return *folder;
  return core::fail(core::ErrorCode::kNotFound,
                    "no model " + name_or_path +
                        ": neither a folder of that name nor in the hub "
                        "cache at " +
                        repository.string() + " (nothing is downloaded)",
                    "set HF_HOME or give a folder");
}

}  // namespace troupe::model
