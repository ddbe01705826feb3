// Reads a Python script of a user of TRL by the parser of a side process of stock Python. Nothing
// of the script is run. Blocks for as long as Python starts.
#pragma once

#include "runtime/config/peer_file.hpp"

namespace troupe::app {

// Errors naming the file: kConfig (no Python, by its parser's words and line; too large),
// kResources (python3 cannot be started, or does not answer).
core::Result<config::PythonScript> read_trl_script(const std::filesystem::path& file);

}  // namespace troupe::app
