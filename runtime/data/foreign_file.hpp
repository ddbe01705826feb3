// Names what was given in place of a file of rows (Parquet, a compressed file, a folder, a data set
// of a hub), and the one line that makes rows of it. Reads the first bytes of the file.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::data {

// Succeeds for a regular file that is none of the formats known here. `key`: the setting that named
// it. Errors: kNotFound (no such file), kData (a folder, a file of another format).
core::Result<void> check_rows_file(const std::filesystem::path& file, std::string_view key);

}  // namespace troupe::data
