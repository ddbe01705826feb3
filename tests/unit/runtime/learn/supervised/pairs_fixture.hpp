// Two pairs with their figures, and finite differences of a loss over them: for tests of losses
// without a model.
#pragma once

#include "runtime/learn/supervised/loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::learn::test {

using Values = std::vector<double>;

inline LossSettings of_kind(Chosen<Method> method) {
  LossSettings settings;
  settings.method = method;
  settings.beta = 0.5;
  return settings;
}

inline double softplus(double x) {
  return std::log1p(std::exp(x));
}
inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Two pairs whose reference sums are -3, -4 and -5, -2; answers of 2, 4 and 5, 1 tokens.
inline RowFacts two_pairs() {
  return {.first_tokens = {2, 5},
          .second_tokens = {4, 1},
          .reference_first = {-3, -5},
          .reference_second = {-4, -2},
          .margin = {0, 0.7},
          .desirable = {1, 0},
          .matched = {3, 1}};
}
inline const Values kFirst = {-2.5, -5.5}, kSecond = {-4.25, -1.0};
// Implicit log-ratios: 0.5, -0.5 (better) and -0.25, 1 (worse): h = 0.75 and -1.5.

inline void expect_finite_differences(const LossSettings& settings, double z = 0) {
  const StepTotals totals{.rows = 3, .first_tokens = 9, .z = z};
  const Values second = settings.method->pairs() ? kSecond : Values();
  const auto got = supervised_gradient(settings, two_pairs(), totals, kFirst, second);
  const double step = 1e-6;
  for (std::size_t i = 0; i < 2; ++i) {
    for (const bool of_first : {true, false}) {
      if (!of_first && second.empty()) continue;
      const auto at = [&](double shift) {
        Values a = kFirst, b = second;
        (of_first ? a : b)[i] += shift;
        return supervised_gradient(settings, two_pairs(), totals, a, b).loss;
      };
      const double slope = (at(step) - at(-step)) / (2 * step);
      EXPECT_NEAR((of_first ? got.first : got.second)[i], slope, 1e-8) << i << of_first;
    }
  }
}

}  // namespace troupe::learn::test
