// The types of keys.
#pragma once

#include "runtime/core/device_name.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::config {

using Int = std::int64_t;
using Float = double;
using Text = std::string;
using Floats = std::vector<double>;
using Texts = std::vector<std::string>;
using Device = core::DeviceName;
using Devices = std::vector<core::DeviceName>;

}  // namespace troupe::config
