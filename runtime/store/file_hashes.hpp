// SHA-256 of large files that seldom change (weights, tokenizers, data sets), with a cache. The
// cache is a folder, $TROUPE_HOME/hashes or else ~/.cache/troupe/hashes, with one small file per
// path. A cached hash is valid while the file's size, device, inode and times are unchanged. Files
// below 1 MiB, and those that changed less than 2 s before they are read, are not cached, and
// nothing is without a writable folder. Safe on any thread; blocks.
#pragma once

#include "runtime/core/result.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::store {

// The hash of one file. Errors: kNotFound, kResources; kInterrupted once `stop` (may be null) is
// true. `now`: when the reading begins.
core::Result<std::string> cached_sha256(
    const std::filesystem::path& file,
    const std::atomic<bool>* stop = nullptr,
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

// One hash for several files: the file's own hash if there is one file, otherwise the hash of their
// names and hashes in the given order. Reads up to four files at once.
core::Result<std::string> sha256_of_files(const std::vector<std::filesystem::path>& files,
                                          const std::atomic<bool>* stop = nullptr);

}  // namespace troupe::store
