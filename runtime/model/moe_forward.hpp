// The forward pass of a mixture-of-experts layer's feed-forward part: chooses experts for each row,
// gathers the rows of each expert into one matrix, runs the expert's two products on it, and adds
// the weighted outputs to the residual stream. The team splits the products' columns by cost.
// Weights of experts that no row chose are not read. A row's result does not depend on which other
// rows chose its experts (docs/adr/0003). Nothing is allocated.
#pragma once

#include "runtime/model/forward.hpp"
#include "runtime/model/moe_routing.hpp"
#include "runtime/model/shares.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace troupe::model {

// Reads io.normed, the rows after the layer's second norm, and computes io.out = io.x_mid + the
// weighted outputs of the experts. If io.out is null, computes only what a backward pass needs.
// Every member of the team calls it with the same arguments. Contains barriers; the caller adds one
// after it.
void sparse_feed_forward(const Shares& shares,
                         const ModelSpec& spec,
                         const PackedMoe& weights,
                         const LayerBuffers& io,
                         std::int64_t rows);

// How many expert choices one row has over all mixture-of-experts layers.
inline std::int64_t routed_width(const ModelSpec& spec) {
  return spec.moe.sparse_layers(spec.layers) * spec.moe.experts_per_token;
}

// Copies the experts chosen for rows[i] to out[i][sparse], for this member's share of i. `out` is
// [rows.size()][mixture-of-experts layers][k]; `sparse` is the layer's index among those layers.
void copy_choices(core::Team team,
                  const ModelSpec& spec,
                  const Routing& routing,
                  std::span<const std::int32_t> rows,
                  std::int64_t sparse,
                  std::uint16_t* out);

// Splits the products of all experts, `columns` columns each, among the members in whole panels,
// and calls body(expert, panel_begin, panel_end) for this member's share. The cost of a panel is
// its rows plus kReadCost, a constant for reading it.
template <class Body>
void share_expert_panels(core::Team team,
                         std::int64_t experts,
                         const ExpertRanges& ranges,
                         std::int64_t columns,
                         Body&& body) {
  constexpr std::int64_t kReadCost = 8;
  const std::int64_t panels = kernels::panels_of(columns);
  const auto cost = [&](std::int64_t expert) -> std::int64_t {
    const std::int64_t rows = ranges.rows(expert);
    return rows == 0 ? 0 : rows + kReadCost;
  };
  std::int64_t total = 0;
  for (std::int64_t e = 0; e < experts; ++e)
    total += cost(e) * panels;
  const std::int64_t from = total * team.rank / team.size;
  const std::int64_t to = total * (team.rank + 1) / team.size;
  std::int64_t at = 0;
  for (std::int64_t e = 0; e < experts && at < to; ++e) {
    const std::int64_t each = cost(e);
    if (each == 0) continue;
    // The first panel that starts at or after a bound belongs to the next member.
    const auto cut = [&](std::int64_t bound) {
      return bound <= at ? 0 : std::min((bound - at + each - 1) / each, panels);
    };
    if (const std::int64_t begin = cut(from), end = cut(to); begin < end) body(e, begin, end);
    at += each * panels;
  }
}

}  // namespace troupe::model
