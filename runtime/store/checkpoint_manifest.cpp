#include "runtime/store/checkpoint_manifest.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/io_error.hpp"
#include "runtime/store/sha256.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using core::ErrorCode;
using core::fail;
using core::Result;

constexpr int kFormat = 1;
constexpr std::uint64_t kManifest_bytes_max = 16u << 20;

// A path that stays inside the checkpoint.
bool is_inside(const std::string& path) {
  const fs::path relative(path);
  return !path.empty() && relative.is_relative() &&
         std::none_of(relative.begin(), relative.end(),
                      [](const fs::path& part) { return part == ".." || part == "."; });
}

}  // namespace

Result<std::string> make_manifest(const fs::path& folder,
                                  std::uint64_t step,
                                  const std::string& state_json) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file()) continue;
    paths.push_back(fs::relative(it->path(), folder).generic_string());
  }
  if (error) return io_failure("read folder", folder, error.value());
  std::sort(paths.begin(), paths.end());

  Json files = Json::array();
  for (const std::string& path : paths) {
    if (path == kManifestName) continue;
    TROUPE_TRY_ASSIGN(digest, sha256_file(folder / path));
    files.push_back({{"path", path}, {"bytes", digest.bytes}, {"sha256", digest.sha256}});
  }
  Json state = Json::parse(state_json, nullptr, false);
  if (!state.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "a checkpoint's state must be a JSON object");
  }
  const Json manifest = {{"format", kFormat},
                         {"step", step},
                         {"state", std::move(state)},
                         {"files", std::move(files)}};
  return manifest.dump(1) + "\n";
}

Result<Checkpoint> read_manifest(const fs::path& folder) {
  const fs::path file = folder / kManifestName;
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  if (error) return fail(ErrorCode::kData, file.string() + " is missing");
  if (bytes > kManifest_bytes_max) return fail(ErrorCode::kData, file.string() + " is too large");
  TROUPE_TRY_ASSIGN(text, read_all(file));
  try {
    const Json manifest = Json::parse(text);
    if (manifest.at("format").get<int>() != kFormat) {
      return fail(ErrorCode::kData, file.string() + " has a format of another version");
    }
    Checkpoint out;
    out.folder = folder;
    out.step = manifest.at("step").get<std::uint64_t>();
    out.state_json = manifest.at("state").dump();
    for (const Json& entry : manifest.at("files")) {
      CheckpointFile item{entry.at("path").get<std::string>(),
                          entry.at("bytes").get<std::uint64_t>(),
                          entry.at("sha256").get<std::string>()};
      if (!is_inside(item.path)) {
        return fail(ErrorCode::kData, file.string() + " names a file outside the checkpoint");
      }
      out.files.push_back(std::move(item));
    }
    return out;
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::kData, file.string() + " is damaged");
  }
}

}  // namespace troupe::store
