// Computes an evaluation's metrics from the samples of each problem: pass@1, pass@k, maj@k, mean
// score, share of truncated responses, mean length, correlations of score and length; over all
// problems and for each data source.
// Used by `troupe eval`, and for a run's evaluations, which it reads back from the run folder.
// Stateless.
#pragma once

#include "actors/controller/run_listener.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/evaluation.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace troupe::session {

// One held-out problem; each vector has one entry per sample.
struct EvalProblem {
  std::string source;  // value of the column `datasource`; empty: none
  std::vector<double> scores;
  std::vector<std::string> answers;  // for majority votes; empty: no answer
  std::vector<bool> cut;             // the response was ended by the token limit
  std::vector<double> lengths;       // of the responses, in tokens
  std::vector<double> rated;         // scores of an extra reward model; empty: none
  std::string set{};                 // of eval.sets; "": that of eval.dataset
  std::uint64_t id = 0;              // row in its dataset
};

struct EvalFigure {
  std::string name;  // "pass@1", "maj@4", "reward", "truncated_rate", "response_length",
                     // "reward_model", "length_pearson", "length_spearman"
  learn::Interval value;
};

struct EvalSet {
  std::string name;  // "" for all problems
  std::uint64_t problems = 0;
  std::vector<EvalFigure> figures;
};

// The set of all problems, then one set per data source, sorted by name. A sample passes when its
// score is at least `pass_score`. Each k is at most the fewest samples of a problem. Intervals are
// 95 % bootstraps over problems. Correlations of score and length are over all samples; a set whose
// scores or lengths are all equal has none.
core::Result<std::vector<EvalSet>> eval_figures(const std::vector<EvalProblem>& problems,
                                                const std::vector<std::int64_t>& ks,
                                                double pass_score,
                                                int resamples = 2000);

// eval/pass@1, eval/pass@n, eval/maj@n, eval/reward and the like of eval.dataset, and
// eval/SOURCE/... of each data source; of a named set eval/SET/... and eval/SET/SOURCE/...; n is
// the fewest samples of a problem of the set.
core::Result<actors::controller::Metrics> evaluation_metrics(
    const std::vector<EvalProblem>& problems, double pass_score);

// What extracts the answers of a set's problems, as answer_of does.
struct AnswerRule {
  std::string rule, pattern;
};
using AnswerRules = std::map<std::string, AnswerRule>;  // by set

// The sampled (not greedy) problems of eval/step_N.jsonl; a set without a rule has whole texts as
// answers. Error: kData naming the file and line that cannot be read.
core::Result<std::vector<EvalProblem>> read_problems(const std::filesystem::path& file,
                                                     const AnswerRules& answers);

// How many of the two evaluations after `done` updates a run's metrics.jsonl has. A file without a
// row of these updates, of a branch that begins with them, has both.
std::uint64_t evaluations_in(const std::filesystem::path& metrics, std::uint64_t done);

// The mean reward of each problem in a file eval/step_N.jsonl, in file order, by set.
struct ProblemMeans {
  std::vector<double> sampled, greedy;
};
// Error: as read_problems.
core::Result<std::map<std::string, ProblemMeans>> read_problem_means(
    const std::filesystem::path& file);

// The mean; 0 for no values.
template <class Values>
double mean_of(const Values& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace troupe::session
