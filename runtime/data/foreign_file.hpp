// Names what was given in place of a file of rows (an Excel sheet, a file compressed by xz, a data
// set of a hub), and the one line that makes rows of it. Reads the first bytes of the file.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::data {

// Succeeds for a regular file that is none of the formats known here. `key`: the setting that named
// it. Errors: kNotFound (no such file), kData (a folder, a file of another format, text whose name
// says that it is a table or compressed).
core::Result<void> check_rows_file(const std::filesystem::path& file, std::string_view key);

// Why a folder that has no files of rows is no data set, and what to name instead.
core::Failure folder_without_rows(const std::filesystem::path& folder);

}  // namespace troupe::data
