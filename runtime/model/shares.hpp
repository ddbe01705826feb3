// How a team divides the work of one layer's forward pass. There are two ways, with the same bits.
// With few rows, members split the columns of each product, so that each reads only a part of the
// weights. With many rows, they split the rows, and need a barrier only where a row reads others. A
// value type that lives for one layer; internal to this room.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/team.hpp"

#include <cstdint>
#include <utility>

namespace troupe::model {

// With at least this many rows per member, members split rows.
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
  Range rows() const { return own_; }  // this member's rows in row-local work
  // Computes this member's part of a product.
  void gemm(const kernels::Gemm& g) const {
    const Range panels = columns(g.n);
    const Range rows = by_rows_ ? own_ : Range{0, rows_};
    if (!panels.empty() && !rows.empty()) kernels::ops().gemm(g, rows, panels);
  }
  // The barrier between row-local work and a product, in either order. Only members that split
  // columns wait. `next`: the weights [n, k] of the product that follows, prefetched while waiting.
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
