#include "runtime/names/locate.hpp"

#include <mutex>
#include <optional>
#include <utility>

namespace troupe::names {
namespace {

namespace fs = std::filesystem;

// Of the process, as the terminal is on which the user is asked.
std::mutex fetch_mutex;
Fetch fetch_allowed;

std::optional<Found> cached(const HubName& name) {
  return name.kind == Kind::kModel ? find_model(name) : find_rows(name);
}

// What locate is satisfied with when nothing can be downloaded: a loader says what is missing.
std::optional<Found> cached_in_part(const HubName& name) {
  return name.kind == Kind::kModel ? find_model(name, Need::kConfig) : std::nullopt;
}

bool exists_here(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string command(const HubName& name) {
  return "`troupe get " + name.text() + (name.kind == Kind::kModel ? "" : " --dataset") + "`";
}

}  // namespace

void allow_fetching(Fetch fetch) {
  const std::lock_guard lock(fetch_mutex);
  fetch_allowed = std::move(fetch);
}

Result<Found> locate(const HubName& name) {
  if (auto found = cached(name)) return *found;
  const std::lock_guard lock(fetch_mutex);
  if (auto found = cached(name)) return *found;  // another thread has fetched it
  // Rows that another program put there are found by the same process that downloads.
  const bool may_ask = !offline() || name.kind == Kind::kDataset;
  if (fetch_allowed && may_ask) return fetch_allowed(name);
  if (auto found = cached_in_part(name)) return *found;
  const std::string what = name.text() + " is neither a path nor in the hub cache (" +
                           repository_folder(name).string() + ")";
  if (offline()) {
    return fail(ErrorCode::kNotFound, what + ", and HF_HUB_OFFLINE is set",
                "unset it, or leave out --offline");
  }
  return fail(ErrorCode::kNotFound, what,
              command(name) + " fetches it; HF_HOME says where the cache is");
}

bool means_hub(const std::string& text, Kind kind) {
  const auto name = hub_name(text, kind);
  if (!name || exists_here(text)) return false;
  if (!exists_here(text.substr(0, text.find('/')))) return true;
  return cached(*name) || cached_in_part(*name);
}

Result<std::vector<fs::path>> row_files(const std::string& text) {
  if (!means_hub(text, Kind::kDataset)) return std::vector<fs::path>{text};
  TROUPE_TRY_ASSIGN(found, locate(*hub_name(text, Kind::kDataset)));
  return found.files;
}

Result<std::string> pinned(const std::string& text, Kind kind) {
  if (!means_hub(text, kind)) return text;
  const HubName name = *hub_name(text, kind);
  TROUPE_TRY_ASSIGN(found, locate(name));
  if (!is_commit(found.commit)) return text;  // a cache that no client of a hub has made
  return name.at(found.commit).text();
}

}  // namespace troupe::names
