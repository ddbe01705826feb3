// Translates an exception that escaped from numeric work. Out of memory and device failures become
// kResources, with advice; any other is a bug. Pure; any thread.
#pragma once

#include "runtime/core/error.hpp"

#include <exception>
#include <string_view>

namespace troupe::core {

// `where`: the prefix of a bug's message.
Error error_of(const std::exception& thrown, std::string_view where = {});

}  // namespace troupe::core
