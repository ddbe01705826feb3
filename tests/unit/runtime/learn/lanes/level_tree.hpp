// The tree of lanes as its definition says it, level by level: what lane_tree.hpp and the sums of
// the trainers are compared with.
#pragma once

#include "runtime/core/rng.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::learn {

template <class Value, class Join>
std::optional<Value> level_tree(std::vector<std::optional<Value>> level, const Join& join) {
  while (level.size() > 1) {
    std::vector<std::optional<Value>> above;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      const bool has_right = i + 1 < level.size() && level[i + 1];
      if (!has_right) {
        above.push_back(level[i]);
      } else if (!level[i]) {
        above.push_back(level[i + 1]);
      } else {
        above.push_back(join(*level[i], *level[i + 1]));
      }
    }
    level = std::move(above);
  }
  return level.empty() ? std::nullopt : level.front();
}

using Numbers = std::vector<float>;

// Of very different size and of both signs, so that their sum depends on the order.
inline Numbers uneven_numbers(std::size_t size, std::uint64_t seed) {
  core::Rng rng(seed);
  Numbers numbers(size);
  for (float& number : numbers)
    number = static_cast<float>(rng.next_normal()) *
             std::ldexp(1.0f, static_cast<int>(rng.next_below(20)) - 10);
  return numbers;
}

inline Numbers added(const Numbers& a, const Numbers& b) {
  Numbers sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    sum[i] = a[i] + b[i];
  return sum;
}

// The gradient of a step from those of its micro-batches, in the plan's order; nothing where a
// micro-batch has none. `size`: numbers in each.
inline Numbers gradient_of(const std::vector<std::optional<Numbers>>& micro_batches,
                           std::size_t lanes,
                           std::size_t size) {
  Numbers step(size, 0.0f);
  for (std::size_t first = 0; first < micro_batches.size(); first += lanes) {
    std::vector<std::optional<Numbers>> round(lanes);
    for (std::size_t lane = 0; lane < lanes && first + lane < micro_batches.size(); ++lane)
      round[lane] = micro_batches[first + lane];
    if (const auto sum = level_tree<Numbers>(round, added)) step = added(step, *sum);
  }
  return step;
}

}  // namespace troupe::learn
