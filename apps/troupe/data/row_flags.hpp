// --data and --model, as all commands have them that look at rows before a run: `troupe init` and
// `troupe data`. Pure.
#pragma once

#include "apps/cli/flags.hpp"

#include <string>
#include <vector>

namespace troupe::app {

// `more`: the command's own flags, behind these.
inline std::vector<cli::Flag> row_flags(std::string& data,
                                        std::string& model,
                                        std::vector<cli::Flag> more) {
  std::vector<cli::Flag> all = {
      {"--data", &data, "rows to train on; several files with commas between them"},
      {"--model", &model, "model to train: a folder, or org/name in the local cache"}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace troupe::app
