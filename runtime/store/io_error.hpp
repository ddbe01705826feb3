// Turns the errno of a failed file operation into an Error that names the path and says what to do:
// no space, quota, read-only, permission, missing. Stateless; safe on any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <filesystem>
#include <string_view>

namespace troupe::store {

// "cannot write /x/y: No space left on device; free ..." as kDiskFull (ENOSPC, EDQUOT), kResources
// or kNotFound.
// `what` is the verb phrase ("write", "make folder"); `error_number` an errno value.
core::Failure io_failure(std::string_view what,
                         const std::filesystem::path& path,
                         int error_number);

}  // namespace troupe::store
