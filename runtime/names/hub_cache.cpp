#include "runtime/names/hub_cache.hpp"

#include "runtime/names/limits.hpp"
#include "runtime/parse/bounded_json.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace troupe::names {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// ~ at the start, $NAME and ${NAME}; a variable that is not set stays as it is written.
fs::path expanded(std::string text) {
  if (text == "~" || text.starts_with("~/")) text = variable("HOME") + text.substr(1);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool braced = text[i] == '$' && i + 1 < text.size() && text[i + 1] == '{';
    std::size_t end = i + (braced ? 2 : 1);
    const auto begin = end;
    while (text[i] == '$' && end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    const std::string name = text.substr(begin, end - begin);
    const bool whole = !braced || (end < text.size() && text[end] == '}');
    if (text[i] == '$' && whole && !name.empty() && std::getenv(name.c_str()) != nullptr) {
      out += variable(name);
      i = braced ? end : end - 1;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error);  // false for a link to nothing
}

std::optional<Json> json_at(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error || size > limits::kHubFile_bytes_max) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  auto json = parse::bounded_json<Json>(text.str(), {});
  if (!json || !json->is_object()) return std::nullopt;
  return std::move(*json);
}

// Whether all shards that the index names are there.
bool has_shards(const fs::path& folder) {
  const auto index = json_at(folder / "model.safetensors.index.json");
  if (!index || !index->contains("weight_map") || !(*index)["weight_map"].is_object()) return false;
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : (*index)["weight_map"].items()) {
    if (!shard.is_string()) return false;
    shards.insert(shard.get<std::string>());
  }
  return std::ranges::all_of(shards,
                             [&](const std::string& shard) { return is_there(folder / shard); });
}

bool is_enough(const fs::path& folder, Need need) {
  if (need == Need::kConfig) return is_there(folder / "config.json");
  if (is_there(folder / "adapter_config.json") && is_there(folder / "adapter_model.safetensors"))
    return true;
  return is_there(folder / "config.json") &&
         (is_there(folder / "model.safetensors") || has_shards(folder));
}

bool is_unchecked(const fs::path& repository, const std::string& commit) {
  return is_there(repository / ".troupe" / (commit + ".unchecked"));
}

// The commit of the name's revision, as the cache knows it; "": it does not.
std::string commit_of(const HubName& name, const fs::path& repository) {
  if (name.pinned()) return name.revision;
  std::ifstream file(repository / "refs" / (name.revision.empty() ? "main" : name.revision));
  std::string commit;
  file >> commit;
  return commit.find('/') == commit.npos && commit.find("..") == commit.npos ? commit : "";
}

std::optional<Found> newest(const fs::path& repository, Need need) {
  std::optional<Found> newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (fs::directory_iterator it(repository / "snapshots", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code time_error;
    const auto time = fs::last_write_time(it->path(), time_error);
    const std::string commit = it->path().filename().string();
    if (time_error || is_unchecked(repository, commit) || !is_enough(it->path(), need)) continue;
    if (newest && time <= newest_time) continue;
    newest = {commit, it->path(), {}};
    newest_time = time;
  }
  return newest;
}

}  // namespace

fs::path hub_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string cache = variable(name); !cache.empty()) return expanded(cache);
  if (const std::string home = variable("HF_HOME"); !home.empty()) return expanded(home) / "hub";
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty())
    return expanded(xdg) / "huggingface" / "hub";
  return fs::path(variable("HOME")) / ".cache" / "huggingface" / "hub";
}

bool offline() {
  std::string value = variable("HF_HUB_OFFLINE");
  if (value.empty()) value = variable("TRANSFORMERS_OFFLINE");
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

fs::path repository_folder(const HubName& name) {
  std::string folder = (name.kind == Kind::kModel ? "models--" : "datasets--") + name.repository;
  folder.replace(folder.find('/'), 1, "--");
  return hub_cache() / folder;
}

std::optional<Found> find_model(const HubName& name, Need need) {
  const fs::path repository = repository_folder(name);
  const std::string commit = commit_of(name, repository);
  const fs::path folder = repository / "snapshots" / commit;
  if (!commit.empty() && !is_unchecked(repository, commit) && is_enough(folder, need))
    return Found{commit, folder, {}};
  if (!name.revision.empty()) return std::nullopt;
  return newest(repository, need);
}

std::optional<Found> find_rows(const HubName& name) {
  const fs::path repository = repository_folder(name);
  const std::string commit = commit_of(name, repository);
  if (commit.empty() || is_unchecked(repository, commit)) return std::nullopt;
  const auto record =
      json_at(repository / ".troupe" / (commit + "." + name.first + "," + name.second + ".json"));
  if (!record || !record->contains("files") || !(*record)["files"].is_array()) return std::nullopt;
  Found found{commit, repository / "snapshots" / commit, {}};
  for (const Json& file : (*record)["files"]) {
    if (!file.is_string()) return std::nullopt;
    const auto path = fs::path(file.get<std::string>()).lexically_normal();
    if (path.is_absolute() || path.empty() || *path.begin() == "..") return std::nullopt;
    if (!is_there(found.folder / path)) return std::nullopt;
    found.files.push_back(found.folder / path);
  }
  if (found.files.empty()) return std::nullopt;
  return found;
}

}  // namespace troupe::names
