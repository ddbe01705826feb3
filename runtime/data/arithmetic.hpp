// The arithmetic task: one-digit sums and differences in few-shot completion form, with an exact
// answer. Training and held-out problems never share a fact family: with a + b = c go b + a = c,
// c - a = b and c - b = a, and all of a family stand on one side. Families of the worked examples
// in the prompt stand on neither side. Pure functions of their arguments.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::data {

struct ArithmeticProblem {
  enum class Kind { kSum, kDifference };
  Kind kind = Kind::kSum;
  int left = 0;
  int right = 0;

  int answer() const { return kind == Kind::kSum ? left + right : left - right; }
  // The two addends of the family, the smaller first.
  std::pair<int, int> family() const;
  // "3 + 4 = 7\n6 - 2 = 4\n9 + 2 =": two worked examples, then the question.
  std::string prompt() const;
  friend bool operator==(const ArithmeticProblem&, const ArithmeticProblem&) = default;
};

struct ArithmeticSplit {
  std::vector<ArithmeticProblem> train;
  std::vector<ArithmeticProblem> held_out;
};

// Every problem with operands 0..9 and an answer of at least 0, except the families of the
// examples, in a fixed order.
std::vector<ArithmeticProblem> all_arithmetic_problems();

// Families drawn by `seed` until at least `held_out_min` problems are held out; drawn in turn from
// families with and without differences, so that both kinds stand on both sides. Order is shuffled.
// Error: kInvalidArgument when less than half of the problems would be left for training.
core::Result<ArithmeticSplit> split_arithmetic(std::uint64_t seed, int held_out_min);

// Writes train.jsonl and heldout.jsonl, one {"prompt", "answer", "kind"} a line.
core::Result<void> write_arithmetic(const ArithmeticSplit& split,
                                    const std::filesystem::path& folder);

}  // namespace troupe::data
