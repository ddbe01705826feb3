// Routing in a mixture-of-experts layer: chooses the experts of each row and their weights
// (moe_spec.hpp has the formula), and sorts the pairs of row and expert by expert. A row's choice
// does not depend on other rows; the sorted order does. Pure functions; each member of a team calls
// them for its own rows. Nothing is allocated.
#pragma once

#include "runtime/model/moe_spec.hpp"

#include <array>
#include <cstdint>

namespace troupe::model {

// The experts chosen for all rows of a forward pass. k = spec.experts_per_token.
struct Routing {
  float* scores = nullptr;         // [rows, lds]: in: the router's logits; out: probabilities
  std::int64_t lds = 0;            // at least router_rows
  std::int32_t* expert = nullptr;  // [rows, k] ascending in each row
  float* weight = nullptr;         // [rows, k] weight of that expert's output
  std::int32_t* place = nullptr;   // [rows, k] index of the pair (row, expert), sorted by expert
};

// Chooses the experts of rows [begin, end). Turns their scores into probabilities, and the shared
// expert's gate, in the last column, into its sigmoid. Chooses the k largest probabilities; on a
// tie the lower expert wins. With norm_topk, divides them by their sum, added from the largest
// down.
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
