// Mean, deviation and extremes of finite numbers; finite themselves, whatever the numbers are. Sums
// that neither overflow nor cancel are plain ones, so that they have the bits of plain ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace troupe::core {

struct Moments {
  double mean = 0;
  double deviation = 0;  // of the population
  double low = 0, high = 0;
};

// NaN for no numbers.
inline double stable_mean(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, parts = 0;
  for (const double value : values) {
    sum += value;
    parts += value / count;
  }
  return std::isfinite(sum) ? sum / count : parts;
}

inline double stable_deviation(std::span<const double> values, double mean) {
  const auto count = static_cast<double>(values.size());
  double squares = 0, far = 0;
  for (const double value : values) {
    squares += value * value;
    far = std::max(far, std::abs(value / 2 - mean / 2));  // half: a difference may overflow
  }
  const double plain = squares / count - mean * mean;
  if (std::isfinite(plain) && plain > 1e-6 * (squares / count)) return std::sqrt(plain);
  double shares = 0;  // of the largest distance
  for (const double value : values) {
    const double share = far > 0 ? (value / 2 - mean / 2) / far : 0;
    shares += share * share;
  }
  return std::min(far * std::sqrt(shares / count) * 2, std::numeric_limits<double>::max());
}

// All 0 for no numbers.
inline Moments moments_of(std::span<const double> values) {
  if (values.empty()) return {};
  Moments out;
  const auto [low, high] = std::ranges::minmax(values);
  out.mean = stable_mean(values);
  out.deviation = low == high ? 0 : stable_deviation(values, out.mean);
  out.low = low;
  out.high = high;
  return out;
}

}  // namespace troupe::core
