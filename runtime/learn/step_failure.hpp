// What an exception says that ended a forward or backward pass: a device without room or that
// failed is a missing resource, anything else a failure of LibTorch. Pure; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <exception>
#include <string>

namespace troupe::learn {

// `where`: "in a training step".
core::Failure step_failure(const std::exception& thrown, const std::string& where);

}  // namespace troupe::learn
