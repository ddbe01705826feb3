// Resolves the model that a user names to a folder: a path, a run or one of its checkpoints, or a
// name of a hub.
#include "runtime/core/texts.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/names/locate.hpp"

#include <cstdlib>
#include <optional>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;

fs::path environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

bool has_config(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "config.json", error);
}

// The number of a checkpoint's folder, "step_000010"; nullopt for another name.
std::optional<std::uint64_t> step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with("step_")) return std::nullopt;
  return core::number_of<std::uint64_t>(std::string_view(name).substr(5));
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
                        " has no model in ckpt/ yet: a run writes one only with its last "
                        "checkpoint",
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
  const auto name = names::hub_name(name_or_path, names::Kind::kModel);
  if (name && names::means_hub(name_or_path, names::Kind::kModel)) {
    TROUPE_TRY_ASSIGN(found, names::locate(*name));
    return found.folder;
  }
  if (name) {
    return core::fail(core::ErrorCode::kNotFound,
                      "no model folder at " + name_or_path + ", a path in the folder " +
                          name_or_path.substr(0, name_or_path.find('/')),
                      "`troupe get " + name_or_path + "` fetches a hub's model of that name");
  }
  return core::fail(core::ErrorCode::kNotFound, "no model folder at " + name_or_path,
                    "give a folder, or OWNER/NAME of a model on the hub");
}

}  // namespace troupe::model
