// The entries of a list that belong to some rows. Pure functions.
#pragma once

#include "runtime/learn/supervised/loss.hpp"

#include <cstddef>
#include <vector>

namespace troupe::learn {

template <class Values>
auto picked(const Values& from, const std::vector<std::size_t>& indices) {
  std::vector<typename Values::value_type> out;
  for (const std::size_t i : indices)
    out.push_back(from[i]);
  return out;
}

inline RowFacts chosen(const RowFacts& all, const std::vector<std::size_t>& indices) {
  const auto pick = [&](const std::vector<double>& from) {
    return from.empty() ? from : picked(from, indices);
  };
  return {pick(all.first_tokens),     pick(all.second_tokens), pick(all.reference_first),
          pick(all.reference_second), pick(all.margin),        pick(all.desirable),
          pick(all.matched)};
}

}  // namespace troupe::learn
