// Translates an exception that escaped from numeric work into an Error. Lack of memory and failures
// of a device become kResources; any other exception is a bug (kInternal). Pure; any thread.
#pragma once

#include "runtime/core/error.hpp"

#include <exception>
#include <string_view>

namespace troupe::core {

// `where`: the prefix of a bug's message.
Error error_of(const std::exception& thrown, std::string_view where = {});

}  // namespace troupe::core
