// From what a user names to what is on this host: first a path, then the hub cache, then a
// download, if the program has been given one. Any thread; downloads one at a time.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/names/hub_cache.hpp"
#include "runtime/names/hub_name.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace troupe::names {

// Downloads what a name means, with the consent of the user. Errors say what to do.
using Fetch = std::function<core::Result<Found>(const HubName& name)>;
// From now on `locate` may download; null: it may not.
void allow_fetching(Fetch fetch);

// The snapshot of a model, or the rows of a data set. Error kNotFound: the cache lacks it and
// nothing may be downloaded; and those of the download.
core::Result<Found> locate(const HubName& name);

// Whether `text` names something of a hub rather than a path: it has the form, no file or folder
// has that name, and no folder here is called OWNER, unless the cache has it.
bool means_hub(const std::string& text, Kind kind);

// The files of rows that `text` names: itself, or those of a data set of a hub. Errors: those of
// locate.
core::Result<std::vector<std::filesystem::path>> row_files(const std::string& text);

// `text` with the commit that the cache has of it, OWNER/NAME@COMMIT...; itself when it is no name
// of a hub. Downloads what is missing. Errors: those of locate.
core::Result<std::string> pinned(const std::string& text, Kind kind);

}  // namespace troupe::names
