// The restricted Damerau-Levenshtein distance; keeps three rows of the table. Pure; any thread.
#include "runtime/core/edit_distance.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe::core {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words) {
  constexpr std::size_t kStart_min = 3;  // minimum length to match as a prefix
  std::string_view best;
  std::size_t best_cost = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : words) {
    const std::size_t cost = edit_distance(word, candidate);
    if (cost < best_cost) {
      best_cost = cost;
      best = candidate;
    }
  }
  if (!best.empty() || word.size() < kStart_min) return best;
  const auto longer = std::find_if(words.begin(), words.end(), [&](std::string_view candidate) {
    return candidate.starts_with(word);
  });
  return longer == words.end() ? best : *longer;
}

}  // namespace troupe::core
