// The cache that the package huggingface_hub keeps on this host, as it lays it out:
// models--OWNER--NAME/{refs/REVISION, snapshots/COMMIT/FILE, blobs/HASH}. Only reads. Any thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/names/hub_name.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::names {

// $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else $HF_HOME/hub, else huggingface/hub in
// $XDG_CACHE_HOME or ~/.cache. Variables and a leading ~ in them are replaced.
std::filesystem::path hub_cache();

// Whether HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) forbids to ask a hub.
bool offline();

// The folder of a repository in the cache; it need not exist.
std::filesystem::path repository_folder(const HubName& name);

struct Found {
  std::string commit;
  std::filesystem::path folder;              // the snapshot
  std::vector<std::filesystem::path> files;  // of a data set: its rows, in order
};

// How much of a snapshot has to be there.
enum class Need {
  kWhole,   // configuration and weights, or an adapter
  kConfig,  // config.json
};

// The snapshot of the name's commit, of its branch or tag (refs/), or without a revision of main,
// else the newest one. Snapshots with a download that was not checked are passed over
// (.troupe/COMMIT.unchecked).
std::optional<Found> find_model(const HubName& name, Need need = Need::kWhole);

// The rows that the name was found to mean when it was fetched, if all files are there.
std::optional<Found> find_rows(const HubName& name);

}  // namespace troupe::names
