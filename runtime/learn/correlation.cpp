#include "runtime/learn/correlation.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::learn {

std::optional<double> pearson(std::span<const double> x, std::span<const double> y) {
  TROUPE_CHECK(x.size() == y.size(), "a correlation is of pairs");
  if (x.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / count;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xy += dx * dy;
    xx += dx * dx;
    yy += dy * dy;
  }
  const double spread = std::sqrt(xx) * std::sqrt(yy);
  if (!(spread > 0) || !std::isfinite(spread)) return std::nullopt;
  return std::clamp(xy / spread, -1.0, 1.0);
}

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]])
      ++end;
    const double rank = static_cast<double>(first + 1 + end) / 2;  // the mean of first + 1 .. end
    for (; first < end; ++first)
      ranks[order[first]] = rank;
  }
  return ranks;
}

std::optional<double> spearman(std::span<const double> x, std::span<const double> y) {
  return pearson(ranks_of(x), ranks_of(y));
}

}  // namespace troupe::learn
