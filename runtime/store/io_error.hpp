// Turns the errno of a failed file operation into an error that names the path and, for common
// causes (no space, quota, permissions), says what to do. Stateless; safe on any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::store {

// An error such as "cannot write /x/y: No space left on device; free space on ...". Its code is
// kNoRoom for what may come back (space, inodes, quota, open files, memory), kNotFound (ENOENT,
// ENOTDIR), otherwise kResources. `what` is the verb phrase ("write", "make folder"),
// `error_number` an errno value.
core::Failure io_failure(std::string_view what,
                         const std::filesystem::path& path,
                         int error_number);

}  // namespace troupe::store
