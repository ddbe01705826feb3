// Checks the files that a configuration names, without starting a run: models (configuration,
// weight headers, tokenizer), datasets (reads the rows as the run would, except
// data.pretrain_dataset), and rewards in Python (loads them in a worker, as the run does, and calls
// nothing). Reads on the caller's thread.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

#include <string>
#include <vector>

namespace troupe::session {

// Returns one line for each thing that was checked or skipped. The error lists all bad models and
// missing files, each with its key; if there are none, it is the first error of reading the rows.
// kNotFound for a missing file, kData for a malformed one.
core::Result<std::vector<std::string>> look_at_input_files(const config::TrainConfig& config);

}  // namespace troupe::session
