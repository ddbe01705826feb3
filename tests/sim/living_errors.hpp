// The errors that a part that lives may give: all but that of a full disk, which is the disk's.
#pragma once

#include "runtime/core/error.hpp"

#include <array>
#include <cstddef>

namespace troupe::sim {

inline constexpr auto kLivingErrors = [] {
  std::array<core::ErrorCode, static_cast<std::size_t>(core::ErrorCode::kNoRoom)> codes{};
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<core::ErrorCode>(i);
  return codes;
}();

}  // namespace troupe::sim
