// The evaluations of a run, read back from its folder: accuracy of each held-out problem by step.
// Used at the end of a run for the table of before and after. Pure reading.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "apps/session/eval_figures.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::app {

struct Evaluation {
  std::uint64_t step = 0;
  std::vector<double> sampled;  // mean reward of each problem, in file order
  std::vector<double> greedy;

  double sampled_mean() const;
  double greedy_mean() const;
};

// Error: kData naming the file and line that cannot be read.
core::Result<Evaluation> read_evaluation(const std::filesystem::path& file, std::uint64_t step);

// The sampled problems of eval/step_N.jsonl with their answers, as `rule` and `pattern` see them.
// Error: kData naming the file and line that cannot be read.
core::Result<std::vector<EvalProblem>> read_problems(const std::filesystem::path& file,
                                                     const std::string& rule,
                                                     const std::string& pattern);

// eval/pass@1, eval/pass@n, eval/maj@n, eval/reward and the like, and eval/SET/... of each data
// source; n is the fewest samples of a problem.
core::Result<actors::Metrics> evaluation_metrics(const std::vector<EvalProblem>& problems,
                                                 double pass_score);

}  // namespace troupe::app
