// Checks the files that a configuration names without starting a run: models (configuration, weight
// headers, tokenizer), data sets (every row, read as a run would), reward files. Reads on the
// caller's thread.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

#include <string>
#include <vector>

namespace troupe::app {

// Returns one line for each thing checked, or skipped and why. The error lists all problems found,
// each with its key: kNotFound for a missing file, kData for a malformed one.
core::Result<std::vector<std::string>> look_at_input_files(const config::TrainConfig& config);

}  // namespace troupe::app
