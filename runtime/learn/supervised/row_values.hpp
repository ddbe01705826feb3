// What a forward pass gives for data rows. A value type.
#pragma once

#include "runtime/learn/supervised/methods.hpp"

#include <cstddef>
#include <vector>

namespace troupe::learn {

// A model's outputs by data row: the sum of each answer's log-probs, or its score. `second` is
// empty for single answers. With a teacher: the sums over the answer's tokens of the divergence
// from it, and of 1 where both find the same token likeliest; else empty.
struct RowValues {
  std::vector<double> first = {}, second = {}, divergence = {}, agreed = {};

  void resize(const Method& method, std::size_t rows) {
    first.assign(rows, 0);
    if (method.pairs()) second.assign(rows, 0);
    if (method.teacher) divergence.assign(rows, 0);
    if (method.teacher) agreed.assign(rows, 0);
  }
  // The lists that the method has, in a fixed order.
  std::vector<std::vector<double>*> columns() {
    std::vector<std::vector<double>*> all;
    for (auto* const list : {&first, &second, &divergence, &agreed})
      if (!list->empty()) all.push_back(list);
    return all;
  }
};

}  // namespace troupe::learn
