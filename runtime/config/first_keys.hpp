// The ten keys of each method that people change first, for the top of its help page. Constants.
#pragma once

#include "runtime/config/method.hpp"

#include <array>
#include <string_view>

namespace troupe::config {

using FirstKeys = std::array<std::string_view, 10>;

// In the order of the help page; the method reads each of them. `method` is a single one.
FirstKeys first_keys(Methods method);

}  // namespace troupe::config
