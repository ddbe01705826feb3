// As core::error_of, for what Asio throws, too: its errors of the system have a type of their own.
// Pure; any thread.
#pragma once

#include "runtime/core/error.hpp"

#include <exception>
#include <string_view>

namespace troupe::async {

core::Error error_of(const std::exception& thrown, std::string_view where = {});

}  // namespace troupe::async
