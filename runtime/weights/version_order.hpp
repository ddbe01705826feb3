// What every publisher of weights says of versions that run backwards or are not there yet. Pure.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"

#include <optional>

namespace troupe::weights {

// kInvalidArgument: `offered` is older than `newest`, which was published before it.
core::Failure older_than_newest(core::Version offered, core::Version newest);
// kNotFound: at least `wanted` was asked for; `newest`: what is there, if anything.
core::Failure version_not_here(core::Version wanted, std::optional<core::Version> newest);

}  // namespace troupe::weights
