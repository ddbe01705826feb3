// How a forward step shares out its rows and the panels of its products over a team. Two ways, same
// bits: with few rows the members split the columns of each product (each reads a part of the
// weights), with many rows they split the rows and need to meet only where a row looks at others.
// A value type for the length of one layer; internal to this room.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <utility>

namespace troupe::model {

// From this many rows per member on, members split rows.
inline constexpr std::int64_t kRowsPerMember_min = 64;

using core::Range;

class Shares {
 public:
  Shares(core::Team team, std::int64_t rows)
      : team_(team),
        rows_(rows),
        by_rows_(team.size == 1 || rows >= kRowsPerMember_min * team.size),
        own_(team.share(rows)) {}
  const core::Team& team() const { return team_; }
  Range rows() const { return own_; }  // row-local work
  void gemm(const kernels::Gemm& g) const {
    const Range panels = columns(g.n);
    const Range rows = by_rows_ ? own_ : Range{0, rows_};
    if (!panels.empty() && !rows.empty()) kernels::ops().gemm(g, rows, panels);
  }
  // Between row-local work and a product, either way round: needed only when columns are split.
  // `next`: the weights of the product that follows, [n, k].
  void meet() const {
    if (!by_rows_) team_.barrier();
  }
  void meet(const kernels::Panels& next, std::int64_t n, std::int64_t k) const {
    if (!by_rows_) team_.barrier(upcoming(next, n, k));
  }
  // The part of a product's weights that this member reads.
  core::Upcoming upcoming(const kernels::Panels& weights, std::int64_t n, std::int64_t k) const {
    if (weights.data == nullptr) return {};
    const Range panels = columns(n);
    const std::int64_t bytes = kernels::panel_bytes(weights.dtype, k);
    return {static_cast<const char*>(weights.data) + panels.begin * bytes, panels.size() * bytes};
  }

 private:
  Range columns(std::int64_t n) const {
    const std::int64_t panels = kernels::panels_of(n);
    return by_rows_ ? Range{0, panels} : team_.share(panels);
  }

  core::Team team_;
  std::int64_t rows_;
  bool by_rows_;
  Range own_;
};

}  // namespace troupe::model
