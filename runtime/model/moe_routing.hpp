// Which experts a token passes through and with what weights (moe_spec.hpp has the formula), and
// the rows of a step put in order by expert. The choice is row-local, so it does not depend on
// the other rows; the order is a function of all choices. Pure; members of a team call these for
// rows of their own. Nothing is allocated.
#pragma once

#include "runtime/model/moe_spec.hpp"

#include <array>
#include <cstdint>

namespace troupe::model {

// The choices of a step's rows. k = spec.experts_per_token.
struct Routing {
  float* scores = nullptr;         // [rows, lds]: in the router's logits, out probabilities
  std::int64_t lds = 0;            // at least router_rows
  std::int32_t* expert = nullptr;  // [rows, k] ascending in each row
  float* weight = nullptr;         // [rows, k]
  std::int32_t* place = nullptr;   // [rows, k] where the pair (row, expert) lies among all pairs
};

// Rows [begin, end): scores become probabilities (and sigmoid(g) in the shared gate's column), the
// k largest probabilities give `expert` and `weight`. Of equal ones the lower expert is taken. The
// sum that norm_topk divides by runs over the chosen from the largest down.
void route_rows(const MoeSpec& spec, const Routing& routing, std::int64_t begin, std::int64_t end);

// Pairs of expert e are [begin[e], begin[e + 1]), in the order of rows.
struct ExpertRanges {
  std::array<std::int32_t, kExperts_max + 1> begin{};
  std::int32_t rows(std::int64_t expert) const {
    const auto e = static_cast<std::size_t>(expert);
    return begin[e + 1] - begin[e];
  }
  std::int32_t first(std::int64_t expert) const { return begin[static_cast<std::size_t>(expert)]; }
};

// The sum of term(i) for i in [0, count), over 16 lanes and the tree of docs/adr/0003.
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

// Counts the choices of all `rows`, and writes the places of rows [begin, end).
void place_rows(const MoeSpec& spec,
                const Routing& routing,
                std::int64_t rows,
                std::int64_t begin,
                std::int64_t end,
                ExpertRanges& ranges);

}  // namespace troupe::model
