// Makes a configuration of this project from another trainer's: names and values by the table of
// names (peer_names.hpp), what has no counterpart as comments with the reason. Pure.
#pragma once

#include "runtime/config/peer_file.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::config {

struct PeerRecipe {
  std::string yaml;        // reads back without an error of a key
  std::size_t keys = 0;    // that are set
  std::size_t held = 0;    // settings that ask for what is so anyway
  std::size_t others = 0;  // settings that stand as comments, with the reason
  // What a run would still refuse: needed keys that are missing, rules between keys that are
  // broken.
  std::vector<std::string> missing;
};

// `name` is the file's, for the first line.
PeerRecipe make_recipe(const Table& table, const PeerFile& file, std::string_view name);

}  // namespace troupe::config
