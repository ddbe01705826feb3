// The types of keys.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/device_name.hpp"

#include <chrono>
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

// A duration of a room's struct whose key counts so many seconds each.
template <int kSeconds>
struct CountedIn : core::Duration {
  CountedIn(double count)
      : CountedIn(std::chrono::duration_cast<core::Duration>(
            std::chrono::duration<double>(kSeconds * count))) {}
  template <class Rep, class Period>
  CountedIn(std::chrono::duration<Rep, Period> span) : core::Duration(span) {}
};
using Seconds = CountedIn<1>;
using Minutes = CountedIn<60>;

}  // namespace troupe::config
