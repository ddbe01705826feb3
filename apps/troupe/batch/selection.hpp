// Turns scored responses into training data: the best response of each prompt (rejection sampling),
// best against worst as a pair (iterative DPO), or rows whose prompt names the score (conditional
// SFT). Pure functions on JSON lines. Rows belong to one prompt when they have the same prompt_id
// or, without one, the same prompt; they need not be adjacent.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::app {

// Names of the columns.
struct SelectionKeys {
  std::string input = "prompt";
  std::string response = "response";
  std::string reward = "reward";
};

struct Selected {
  std::string lines;          // the selected rows, each with its newline
  std::uint64_t rows = 0;     // number of selected rows
  std::uint64_t prompts = 0;  // number of prompts in the input
  std::uint64_t equal = 0;    // scored prompts without a pair: all scores or both texts are equal
};

// The rows with a response that is not empty.
std::string with_response(std::string_view lines, const SelectionKeys& keys);

// Selects one row for each prompt: the first of those with the highest score.
core::Result<Selected> best_of_n(std::string_view lines, const SelectionKeys& keys);

// Makes one row for each prompt from the first of its best responses (chosen) and the first of its
// worst (rejected): the best row's columns without those of a response, and chosen, rejected,
// chosen_reward, rejected_reward. With `pairs` above 1 also from the best and other texts with
// lower scores, the worst first, up to that many rows.
core::Result<Selected> best_against_worst(std::string_view lines,
                                          const SelectionKeys& keys,
                                          std::uint64_t pairs = 1);

// Every scored row, with its prompt replaced by the template `pattern`, in which {input} stands for
// the prompt, {reward} or {:.2f} for the score with two decimals ({:.1f}: one), and {NAME} or
// {NAME:.1f} for column NAME, so that a prompt may name several attributes. A template T without
// {input} means "{input} T ": "<rm_score>: {:.2f}" is OpenRLHF's "{input} <rm_score>: {reward} ".
// `normalise`: writes (value - mean) / deviation over all rows that count (deviation with n - 1),
// of each attribute that is a number. A row without one of the attributes is left out. Errors:
// kConfig: the template names no attribute; kData: a prompt is not text, or no row has all
// attributes.
core::Result<Selected> conditional_rows(std::string_view lines,
                                        const SelectionKeys& keys,
                                        const std::string& pattern,
                                        bool normalise);

}  // namespace troupe::app
