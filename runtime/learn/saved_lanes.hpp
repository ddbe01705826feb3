// Reads from a saved state in how many lanes its gradients were added (train.lanes), so that
// whoever goes on from it can compare. A state goes on with any number of lanes, but not to the
// same bits.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::learn {

// `folder`: the state that a trainer saved. Errors: kNotFound, kData.
core::Result<std::int64_t> saved_lanes(const std::filesystem::path& folder);

}  // namespace troupe::learn
