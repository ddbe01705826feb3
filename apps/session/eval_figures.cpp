#include "apps/session/eval_figures.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace troupe::app {
namespace {

using core::Result;
using Problems = std::vector<const EvalProblem*>;

template <class Values>
double mean_of(const Values& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class Figures {
 public:
  Figures(std::string name, Problems problems, int resamples)
      : problems_(std::move(problems)), resamples_(resamples) {
    set_.name = std::move(name);
    set_.problems = problems_.size();
  }

  Result<void> add(std::string name, const std::function<double(const EvalProblem&)>& of_problem) {
    std::vector<double> values;
    for (const EvalProblem* problem : problems_)
      values.push_back(of_problem(*problem));
    TROUPE_TRY_ASSIGN(interval, learn::bootstrap_mean(values, resamples_, 1));
    set_.figures.push_back({std::move(name), interval});
    return {};
  }
  EvalSet take() { return std::move(set_); }

 private:
  Problems problems_;
  const int resamples_;
  EvalSet set_;
};

Result<EvalSet> figures_of(std::string name,
                           Problems problems,
                           const std::vector<std::int64_t>& ks,
                           double pass_score,
                           int resamples) {
  const bool rated = !problems.empty() && !problems.front()->rated.empty();
  Figures figures(std::move(name), std::move(problems), resamples);
  for (const std::int64_t k : ks) {
    TROUPE_TRY(figures.add("pass@" + std::to_string(k), [&](const EvalProblem& problem) {
      const auto right = std::count_if(problem.scores.begin(), problem.scores.end(),
                                       [&](double score) { return score >= pass_score; });
      return learn::pass_at_k(std::ssize(problem.scores), right, k);
    }));
  }
  for (const std::int64_t k : ks) {
    if (k == 1) continue;  // pass@1
    TROUPE_TRY(figures.add("maj@" + std::to_string(k), [&](const EvalProblem& problem) {
      std::vector<double> passed;
      for (const double score : problem.scores)
        passed.push_back(score >= pass_score ? 1 : 0);
      return learn::majority_at_k(problem.answers, passed, k);
    }));
  }
  TROUPE_TRY(figures.add("reward", [](const EvalProblem& p) { return mean_of(p.scores); }));
  TROUPE_TRY(figures.add("truncated_rate", [](const EvalProblem& p) { return mean_of(p.cut); }));
  TROUPE_TRY(
      figures.add("response_length", [](const EvalProblem& p) { return mean_of(p.lengths); }));
  if (rated) {
    TROUPE_TRY(figures.add("reward_model", [](const EvalProblem& p) { return mean_of(p.rated); }));
  }
  return figures.take();
}

}  // namespace

Result<std::vector<EvalSet>> eval_figures(const std::vector<EvalProblem>& problems,
                                          const std::vector<std::int64_t>& ks,
                                          double pass_score,
                                          int resamples) {
  Problems all;
  std::map<std::string, Problems> sources;
  for (const EvalProblem& problem : problems) {
    const auto samples = std::ssize(problem.scores);
    const bool whole =
        samples == std::ssize(problem.answers) &&
        std::all_of(ks.begin(), ks.end(), [&](std::int64_t k) { return k >= 1 && k <= samples; });
    if (!whole || samples == 0) {
      return core::fail(core::ErrorCode::kInvalidArgument,
                        "pass@k and maj@k need k from 1 to the samples of a problem (" +
                            std::to_string(samples) + ")");
    }
    all.push_back(&problem);
    if (!problem.source.empty()) sources[problem.source].push_back(&problem);
  }
  std::vector<EvalSet> sets;
  TROUPE_TRY_ASSIGN(first, figures_of("", std::move(all), ks, pass_score, resamples));
  sets.push_back(std::move(first));
  for (auto& [name, some] : sources) {
    TROUPE_TRY_ASSIGN(set, figures_of(name, std::move(some), ks, pass_score, resamples));
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace troupe::app
