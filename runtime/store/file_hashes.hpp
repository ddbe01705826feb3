// SHA-256 of files that are large and seldom change: weights, tokenizers, data sets. A hash is kept
// in ~/.cache/troupe/hashes (TROUPE_HOME/hashes), one small file a path, and holds for as long as
// the file's size, place and times are what they were; a file below 1 MiB, or one that changed a
// moment ago, is hashed each time. Without a writable cache everything is hashed each time. Safe on
// any thread; blocks.
#pragma once

#include "runtime/core/result.hpp"

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::store {

// Of one file. Errors: kNotFound, kResources; kInterrupted once `stop` (may be null) is true.
core::Result<std::string> cached_sha256(const std::filesystem::path& file,
                                        const std::atomic<bool>* stop = nullptr);

// One hash of several: that of the file when there is one, else of their names and hashes in this
// order. Reads up to four files at once.
core::Result<std::string> sha256_of_files(const std::vector<std::filesystem::path>& files,
                                          const std::atomic<bool>* stop = nullptr);

}  // namespace troupe::store
