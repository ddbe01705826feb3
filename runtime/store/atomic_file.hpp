// Replaces one file so that a reader, or a crash, sees the old or the new content and nothing
// between.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::store {

// Temporary file beside it, fsync, rename, fsync of the folder.
core::Result<void> replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace troupe::store
