// The table of optimisers (docs/algorithms.md, "Optimisation"). Immutable; any thread.
#pragma once

#include "kernels/moment_codes.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace troupe::learn {

struct OptimKind {
  std::string_view name, alias = {};
  std::string_view help;
  bool adam = true;   // false: SGD, which has no second moment
  bool muon = false;  // matrices move by Muon, the rest by AdamW
  // How the moments are held; none: as f32.
  std::optional<kernels::MomentCode> first = {}, second = {};

  // Bytes of the moments of one number, without the scales of blocks.
  std::int64_t bytes() const;

  static std::span<const OptimKind> all();
};

}  // namespace troupe::learn
