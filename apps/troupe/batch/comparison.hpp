// The figures of a comparison of two models' responses to the same prompts: how often one beats the
// other, with standard error, and what the lengths have to do with it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace troupe::app {

// The two responses to one prompt: scores by the same judge, and lengths.
struct ComparedPair {
  std::optional<double> score_a, score_b;  // none: the judge gave none
  double length_a = 0, length_b = 0;
  std::string source;  // of the prompt; empty: none
};

struct Comparison {
  std::uint64_t wins = 0, ties = 0, losses = 0;  // of A
  std::uint64_t lost = 0;                        // pairs without a score, which count for nothing
  double length_a = 0, length_b = 0;             // means over all pairs
  // Decided pairs of unequal length, and how many of them the longer response wins.
  std::uint64_t longer_wins = 0, unequal = 0;
  // Correlations of score A - score B with length A - length B, over pairs that have scores.
  std::optional<double> length_pearson, length_spearman;

  std::uint64_t counted() const { return wins + ties + losses; }
  // (wins + ties / 2) / counted. That of B against A is exactly 1 less it, in every digit.
  double win_rate() const;
  // Error of the win rate: deviation of 1, 0.5, 0 (by n - 1) over root n; the same for B against
  // A.
  double standard_error() const;
  Comparison swapped() const;
};

Comparison compare(std::span<const ComparedPair> pairs);

}  // namespace troupe::app
