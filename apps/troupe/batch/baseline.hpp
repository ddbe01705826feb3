// The samples of an earlier evaluation (`eval --out`), with which another model is compared problem
// by problem. Stateless.
#pragma once

#include "apps/session/eval_figures.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::app {

// Mean scores of each problem, in the order of the data.
struct Baseline {
  std::vector<std::string> prompts;  // the prompt's column as JSON
  std::vector<double> rewards;
  std::vector<double> rated;  // by the extra reward model; empty where a row lacks it
};

// Reads the rows of `eval --out`. `input_key`: the column of the prompt. Errors: kNotFound; kData,
// naming file and line.
core::Result<Baseline> read_baseline(const std::filesystem::path& file,
                                     const std::string& input_key);

// "reward_difference" and, where both sides have it, "reward_model_difference": the mean over
// problems of this model's mean score minus the baseline's, with a 95 % bootstrap interval over
// problems. `prompts`: of `problems`. Error kData: they are not the baseline's problems.
core::Result<std::vector<session::EvalFigure>> differences(
    const std::vector<session::EvalProblem>& problems,
    const std::vector<std::string>& prompts,
    const Baseline& baseline,
    int resamples = 2000);

}  // namespace troupe::app
