// What `troupe data preview|stats|check` read from their words: files, or a method with its
// configuration, and a few flags of their own. Pure, except that configuration files are read.
#pragma once

#include "apps/cli/flags.hpp"
#include "apps/cli/words.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::app {

struct DataWords {
  std::optional<config::TrainConfig> config;  // of the method that was named
  std::string sets;                           // files, patterns, folders, with commas
  std::string key;                            // of `sets`, for messages
  std::string data, model;                    // --data, --model
  std::int64_t rows = 0;                      // --rows; 0: all
  bool json = false;
};

// The flags of `troupe data preview|stats|check` besides the keys of a method.
std::vector<cli::Flag> data_flags(DataWords& out);

// With a method, --data and --model stand for its keys of rows and model. `rows`: where --rows is
// not given. Error kConfig: a wrong flag, neither files nor a method, or the configuration's own.
Result<DataWords> data_words(cli::Words words, std::int64_t rows);

}  // namespace troupe::app
