// The figures of an evaluation from what each problem's samples gave: pass@1, pass@k, maj@k, mean
// score, share of cut responses, mean length; over all problems and for each data source. Used by
// `troupe eval` and by the evaluations of a run, which are read back from its folder. Reads files,
// keeps nothing.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/evaluation.hpp"

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
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

// eval/pass@1, eval/pass@n, eval/maj@n, eval/reward and the like, and eval/SET/... of each data
// source; n is the fewest samples of a problem.
core::Result<actors::Metrics> evaluation_metrics(const std::vector<EvalProblem>& problems,
                                                 double pass_score);

// The sampled problems of eval/step_N.jsonl with their answers, as `rule` and `pattern` see them.
// Error: kData naming the file and line that cannot be read.
core::Result<std::vector<EvalProblem>> read_problems(const std::filesystem::path& file,
                                                     const std::string& rule,
                                                     const std::string& pattern);

// The mean reward of each problem in a file eval/step_N.jsonl, in file order.
struct ProblemMeans {
  std::vector<double> sampled, greedy;
};
// Error: as read_problems.
core::Result<ProblemMeans> read_problem_means(const std::filesystem::path& file);

// 0 of nothing.
template <class Values>
double mean_of(const Values& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace troupe::app
