// A small synthetic task: sums and differences of numbers of one or two digits with exact answers,
// as few-shot prompts. A fact family is a + b = c with b + a = c, c - a = b and c - b = a. Each
// family is wholly in the training set, the validation set or the held-out set; those of the worked
// examples in the prompt are in none. The same seed gives the same problems. Any thread.
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
  int digits = 1;  // of the task's numbers

  int answer() const { return kind == Kind::kSum ? left + right : left - right; }
  // The two addends that identify the fact family, the smaller first.
  std::pair<int, int> family() const;
  // Two worked examples, then the question: "3 + 4 = 7\n6 - 2 = 4\n9 + 2 =", or with two digits
  // "23 + 41 = 64\n67 - 25 = 42\n38 + 94 =".
  std::string prompt() const;
  friend bool operator==(const ArithmeticProblem&, const ArithmeticProblem&) = default;
};

struct ArithmeticSplit {
  std::vector<ArithmeticProblem> train;
  std::vector<ArithmeticProblem> held_out;
  std::vector<ArithmeticProblem> valid;  // empty unless asked for
  std::vector<ArithmeticProblem> sft;    // shares families with `train`, but no problem
};

// Every problem with operands 0..9, or 10..99 with two digits, and an answer of at least 0, except
// those of the worked examples' families. The order is fixed.
std::vector<ArithmeticProblem> all_arithmetic_problems(int digits = 1);

// Holds out random families until they have at least `held_out_min` problems, then others for
// validation until they have `valid_min`, and shuffles all sets. Takes families with and without
// differences in turn (10 or more minus a digit is no problem of the task), so that all sets have
// both. Error (kInvalidArgument): `held_out_min` is below 1, or both together are above half of all
// problems.
core::Result<ArithmeticSplit> split_arithmetic(std::uint64_t seed,
                                               int held_out_min,
                                               int digits = 1,
                                               int valid_min = 0);

// Moves the last `count` training problems into `sft`. Error (kInvalidArgument): there are not more
// than that.
core::Result<void> take_apart(ArithmeticSplit& split, int count);

// Writes train.jsonl, heldout.jsonl and, if there are any, valid.jsonl and sft.jsonl into `folder`,
// one object a line with prompt, answer, kind ("sum" or "difference"), target (the answer behind a
// space, as a model continues the prompt) and question (the prompt without worked examples). Makes
// the folder if it is missing. Errors: kResources.
core::Result<void> write_arithmetic(const ArithmeticSplit& split,
                                    const std::filesystem::path& folder);

}  // namespace troupe::data
