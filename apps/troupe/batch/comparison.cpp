#include "apps/troupe/batch/comparison.hpp"

#include "runtime/learn/correlation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace troupe::app {

double Comparison::win_rate() const {
  const std::uint64_t a = 2 * wins + ties, b = 2 * losses + ties;
  if (a + b == 0) return 0;
  // The larger share is 1 less the smaller one, which has the bits that 1 less the larger one has:
  // both add up to 1 in every digit.
  const double larger = 1 - static_cast<double>(std::min(a, b)) / static_cast<double>(a + b);
  return a > b ? larger : 1 - larger;
}

double Comparison::standard_error() const {
  const auto n = static_cast<double>(counted());
  if (counted() < 2) return 0;
  // n times the sum of squares of doubled outcomes 2, 1, 0, less the square of their sum: a whole
  // number that is the same with wins and losses exchanged.
  const std::uint64_t sum = 2 * wins + ties, squares = 4 * wins + ties;
  const auto spread = static_cast<double>(counted() * squares - sum * sum);
  return std::sqrt(spread / n / (n - 1) / n) / 2;
}

Comparison Comparison::swapped() const {
  Comparison other = *this;
  std::swap(other.wins, other.losses);
  std::swap(other.length_a, other.length_b);
  return other;
}

Comparison compare(std::span<const ComparedPair> pairs) {
  Comparison out;
  std::vector<double> margins, differences;
  for (const ComparedPair& pair : pairs) {
    out.length_a += pair.length_a;
    out.length_b += pair.length_b;
    if (!pair.score_a || !pair.score_b) {
      ++out.lost;
      continue;
    }
    const double margin = *pair.score_a - *pair.score_b;
    const double longer = pair.length_a - pair.length_b;
    ++(margin > 0 ? out.wins : margin < 0 ? out.losses : out.ties);
    if (margin != 0 && longer != 0) {
      ++out.unequal;
      out.longer_wins += (margin > 0) == (longer > 0) ? 1 : 0;
    }
    margins.push_back(margin);
    differences.push_back(longer);
  }
  const double count = static_cast<double>(std::max<std::size_t>(pairs.size(), 1));
  out.length_a /= count;
  out.length_b /= count;
  out.length_pearson = learn::pearson(margins, differences);
  out.length_spearman = learn::spearman(margins, differences);
  return out;
}

}  // namespace troupe::app
