// Chooses the experts of each token and their weights (moe_spec.hpp has the formula), and sorts the
// rows of a step by expert. The choice is row-local, so it does not depend on other rows; the order
// depends on all choices. Pure functions; each member of a team calls them for its own rows.
// Nothing is allocated.
#pragma once

#include "runtime/model/moe_spec.hpp"

#include <array>
#include <cstdint>

namespace troupe::model {

// The choices of all rows of a step. k = spec.experts_per_token.
struct Routing {
  float* scores = nullptr;         // [rows, lds]: in: the router's logits; out: probabilities
  std::int64_t lds = 0;            // at least router_rows
  std::int32_t* expert = nullptr;  // [rows, k] ascending in each row
  float* weight = nullptr;         // [rows, k]
  std::int32_t* place = nullptr;   // [rows, k] index of the pair (row, expert) among all pairs
};

// Routes rows [begin, end). Turns scores into probabilities (and sigmoid(g) in the shared gate's
// column). The k largest probabilities give `expert` and `weight`; on a tie the lower expert wins.
// norm_topk divides by the sum of the chosen probabilities, added from the largest down.
void route_rows(const MoeSpec& spec, const Routing& routing, std::int64_t begin, std::int64_t end);

// The pairs of expert e are [begin[e], begin[e + 1]), in row order.
struct ExpertRanges {
  std::array<std::int32_t, kExperts_max + 1> begin{};
  std::int32_t rows(std::int64_t expert) const {
    const auto e = static_cast<std::size_t>(expert);
    return begin[e + 1] - begin[e];
  }
  std::int32_t first(std::int64_t expert) const { return begin[static_cast<std::size_t>(expert)]; }
};

// The sum of term(i) for i in [0, count), in 16 lanes that are added by the tree of docs/adr/0003.
template <class Term>
float lane_sum(std::int64_t count, Term&& term) {
  float lanes[16] = {};
  for (std::int64_t i = 0; i < count; ++i)
    lanes[i % 16] += term(i);
  for (std::int64_t width = 8; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane)
      lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// Counts the choices of all `rows` into `ranges`, and writes `place` for rows [begin, end).
void place_rows(const MoeSpec& spec,
                const Routing& routing,
                std::int64_t rows,
                std::int64_t begin,
                std::int64_t end,
                ExpertRanges& ranges);

}  // namespace troupe::model
