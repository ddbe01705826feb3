// The sizes and digests of files, noted in their folder by whoever wrote and hashed them, until the
// checkpoint's manifest has them (checkpoint_store.hpp). Plain functions; one process writes into a
// folder's list at a time.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace troupe::store {

struct CheckpointFile {
  std::string path;  // relative to the folder
  std::uint64_t bytes = 0;
  std::string sha256;
};

// The list's name.
inline constexpr const char* kWrittenFiles = "written_files.json";

// Adds files of `folder` to its list; a file that is in it already is replaced. Errors: those of
// files.
core::Result<void> note_written(const std::filesystem::path& folder,
                                std::span<const CheckpointFile> files);
// The list of `folder`, empty if there is none, and removes it. Error kData: it is damaged.
core::Result<std::vector<CheckpointFile>> take_written(const std::filesystem::path& folder);

}  // namespace troupe::store
