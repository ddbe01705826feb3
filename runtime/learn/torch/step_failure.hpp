// Turns an exception that ended a forward or backward pass into an error: with the code that
// core::error_of knows for it, or else kInternal with LibTorch's message. Pure; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <exception>
#include <string>

namespace troupe::learn {

// `where` completes "LibTorch failed ...", as in "in a training step".
core::Failure step_failure(const std::exception& thrown, const std::string& where);

}  // namespace troupe::learn
