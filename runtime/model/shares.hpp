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

struct Range {
  std::int64_t begin, end;
  bool empty() const { return begin >= end; }
};

class Shares {
 public:
  Shares(core::Team team, std::int64_t rows)
      : team_(team),
        rows_(rows),
        by_rows_(team.size == 1 || rows >= kRowsPerMember_min * team.size) {
    const auto [begin, end] = team.share(rows);
    own_ = {begin, end};
  }
  const core::Team& team() const { return team_; }
  Range rows() const { return own_; }  // row-local work
  void gemm(const kernels::Gemm& g) const {
    const std::int64_t panels = kernels::panels_of(g.n);
    const auto [begin, end] =
        by_rows_ ? std::pair<std::int64_t, std::int64_t>{0, panels} : team_.share(panels);
    const Range rows = by_rows_ ? own_ : Range{0, rows_};
    if (begin < end && !rows.empty()) kernels::ops().gemm(g, rows.begin, rows.end, begin, end);
  }
  // Between row-local work and a product, either way round: needed only when columns are split.
  void meet() const {
    if (!by_rows_) team_.barrier();
  }

 private:
  core::Team team_;
  std::int64_t rows_;
  bool by_rows_;
  Range own_{};
};

}  // namespace troupe::model
