// manifest.json of a checkpoint: written from a folder's files, read back with bounds.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/checkpoint_store.hpp"

#include <filesystem>
#include <string>

namespace troupe::store {

inline constexpr const char* kManifestName = "manifest.json";

// Hashes every file below `folder` (the manifest itself excepted) and gives the manifest's text.
core::Result<std::string> make_manifest(const std::filesystem::path& folder,
                                        std::uint64_t step,
                                        const std::string& state_json);

// Reads `folder`/manifest.json; files are not opened. Error kData.
core::Result<Checkpoint> read_manifest(const std::filesystem::path& folder);

}  // namespace troupe::store
