// The figures of an evaluation from what each problem's samples gave: pass@1, pass@k, maj@k, mean
// score, share of cut responses, mean length; over all problems and for each data source. Used by
// `troupe eval` and by the evaluations of a run. Pure.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/learn/evaluation.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {

// One held-out problem; the vectors are by sample.
struct EvalProblem {
  std::string source;  // of the column `datasource`; empty: none
  std::vector<double> scores;
  std::vector<std::string> answers;  // for majority votes; empty: no answer
  std::vector<bool> cut;             // ended by length
  std::vector<double> lengths;       // tokens
  std::vector<double> rated;         // scores of a reward model beside; empty: none
};

struct EvalFigure {
  std::string name;  // "pass@1", "maj@4", "reward", "truncated_rate", "response_length",
                     // "reward_model"
  learn::Interval value;
};

struct EvalSet {
  std::string name;  // "" for all problems
  std::uint64_t problems = 0;
  std::vector<EvalFigure> figures;
};

// All problems first, then each source by name where there is one. A sample passes at `pass_score`.
// Each k is at most the samples of every problem. Intervals are 95 % bootstraps over problems.
core::Result<std::vector<EvalSet>> eval_figures(const std::vector<EvalProblem>& problems,
                                                const std::vector<std::int64_t>& ks,
                                                double pass_score,
                                                int resamples = 2000);

}  // namespace troupe::app
