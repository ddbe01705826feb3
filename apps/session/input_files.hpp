// The files that a configuration names, looked at without starting anything: models (configuration,
// headers of weights, tokenizer), data sets (every row, as a run would take it), reward files.
// Reads on the caller's thread.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

#include <string>
#include <vector>

namespace troupe::app {

// What was looked at, and what was not and why: one line each. Errors name the key, all that are
// found: kNotFound what is not there, kData what is malformed.
core::Result<std::vector<std::string>> look_at_input_files(const config::TrainConfig& config);

}  // namespace troupe::app
