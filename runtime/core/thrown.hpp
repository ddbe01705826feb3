// Translates an exception that escaped numeric work: out of memory and device failures become
// kResources, with advice; any other is a bug. Pure; any thread.
#pragma once

#include "runtime/core/error.hpp"

#include <exception>
#include <string_view>

namespace troupe::core {

// `where`: what a bug's message begins with.
Error error_of(const std::exception& thrown, std::string_view where = {});

}  // namespace troupe::core
