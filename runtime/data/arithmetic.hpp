// A small synthetic task: one-digit sums and differences with exact answers, as few-shot prompts.
// A fact family is a + b = c with b + a = c, c - a = b and c - b = a. Each family is wholly in the
// training set or wholly in the held-out set; those of the worked examples in the prompt are in
// neither. The same seed gives the same problems. Any thread.
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
  // The two addends that identify the fact family, the smaller first.
  std::pair<int, int> family() const;
  // Two worked examples, then the question: "3 + 4 = 7\n6 - 2 = 4\n9 + 2 =".
  std::string prompt() const;
  friend bool operator==(const ArithmeticProblem&, const ArithmeticProblem&) = default;
};

struct ArithmeticSplit {
  std::vector<ArithmeticProblem> train;
  std::vector<ArithmeticProblem> held_out;
};

// Every problem with operands 0..9 and an answer of at least 0, except those of the worked
// examples' families. The order is fixed.
std::vector<ArithmeticProblem> all_arithmetic_problems();

// Holds out random families until they have at least `held_out_min` problems, and shuffles both
// sets. Takes families with and without differences in turn (10 or more minus a digit is no problem
// of the task), so that both sets have both. Error (kInvalidArgument): `held_out_min` is below 1 or
// above half of all problems.
core::Result<ArithmeticSplit> split_arithmetic(std::uint64_t seed, int held_out_min);

// Writes train.jsonl and heldout.jsonl into `folder`, one object with prompt, answer and kind
// ("sum" or "difference") a line. Makes the folder if it is missing. Errors: kResources.
core::Result<void> write_arithmetic(const ArithmeticSplit& split,
                                    const std::filesystem::path& folder);

}  // namespace troupe::data
