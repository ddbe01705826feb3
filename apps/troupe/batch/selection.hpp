// Turns scored responses into training data: the best response of each prompt (rejection sampling),
// best against worst as a pair (iterative DPO), or rows whose prompt names the score (conditional
// SFT). Pure functions on JSON lines. Rows belong to one prompt when they have the same prompt_id
// or, without one, the same prompt; they may stand anywhere.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::app {

struct SelectionKeys {
  std::string input = "prompt";
  std::string response = "response";
  std::string reward = "reward";
};

struct Selected {
  std::string lines;          // the rows, each with its newline
  std::uint64_t rows = 0;     // of them
  std::uint64_t prompts = 0;  // prompts there were
  std::uint64_t equal = 0;    // prompts without a pair: all scores, or both texts, are equal
};

// One row a prompt: the one with the highest score, the first of equals.
core::Result<Selected> best_of_n(std::string_view lines, const SelectionKeys& keys);

// One row a prompt: its columns without the response's, and chosen, rejected, chosen_reward,
// rejected_reward. The first of the best and the first of the worst.
core::Result<Selected> best_against_worst(std::string_view lines, const SelectionKeys& keys);

// Every scored row with its prompt replaced by the template: {input} is the prompt, {reward} or
// {:.2f} the score with two decimals ({:.1f} with one). A template without {input} follows the
// prompt after a blank and gets one behind it, so that "<rm_score>: {:.2f}" is OpenRLHF's
// "{input} <rm_score>: {reward} ". `normalise`: scores less their mean over their deviation (n -
// 1). Errors (kConfig): a template without a place for the score; kData: a prompt that is no text.
core::Result<Selected> conditional_rows(std::string_view lines,
                                        const SelectionKeys& keys,
                                        const std::string& pattern,
                                        bool normalise);

}  // namespace troupe::app
