// The names of devices in flags and keys: "cpu", "cuda" (the same as "cuda:0"), "cuda:N". A value
// type; pure functions.
#pragma once

#include "runtime/core/result.hpp"

#include <string>
#include <string_view>

namespace troupe::core {

struct DeviceName {
  bool gpu = false;
  int ordinal = 0;  // of a GPU, as the driver counts with CUDA_VISIBLE_DEVICES applied

  std::string text() const;  // "cpu", "cuda:1"
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// Error: kConfig for any other name; the message lists what is accepted.
Result<DeviceName> parse_device(std::string_view name);

}  // namespace troupe::core
