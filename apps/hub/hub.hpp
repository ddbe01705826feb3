// Downloads of models and data sets by their names, and uploads of models, by the stock client of
// the hub in a side process. On the main thread: the user may be asked, and a stop signal ends it.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/names/locate.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::hub {

struct Fetched {
  names::Found found;
  std::string config, split;  // of a data set
  std::uint64_t bytes = 0;    // that were moved
};

// Asks the hub for the name's newest commit and downloads what the cache lacks of it; where nobody
// can consent to that, finds what the cache has. `check`: all files are hashed, not only those that
// came. Errors: kConfig (no consent; access is denied), kNotFound, kData (a file is not what the
// hub says), kNoRoom, kPeerLost (network), kInterrupted.
core::Result<Fetched> fetch(const names::HubName& name, bool check = false);

// What names::allow_fetching takes.
core::Result<names::Found> fetch_named(const names::HubName& name);

struct Upload {
  std::filesystem::path folder;  // of a model or an adapter
  std::string name;              // OWNER/NAME
  std::string card;              // README.md; empty: the folder's own
  bool is_private = false;
  bool dry = false;  // only says what it would do
};
// Makes the repository if it is not there and adds one commit. Returns its address. Errors as
// above.
core::Result<std::string> push(const Upload& upload);

}  // namespace troupe::hub
