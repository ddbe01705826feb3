#include "apps/session/eval_figures.hpp"

#include "apps/session/reward_flags.hpp"
#include "runtime/learn/correlation.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <span>

namespace troupe::session {
namespace {

using Problems = std::vector<const EvalProblem*>;

// Scores and lengths of all samples of problems.
struct ScoredLengths {
  std::vector<double> scores, lengths;

  void add(const EvalProblem& problem) {
    if (problem.lengths.size() != problem.scores.size()) return;
    scores.insert(scores.end(), problem.scores.begin(), problem.scores.end());
    lengths.insert(lengths.end(), problem.lengths.begin(), problem.lengths.end());
  }
};

void add_correlations(const Problems& problems, int resamples, EvalSet& set) {
  using Correlate = std::optional<double> (*)(std::span<const double>, std::span<const double>);
  for (const auto& [name, correlate] :
       {std::pair<const char*, Correlate>{"length_pearson", &learn::pearson},
        {"length_spearman", &learn::spearman}}) {
    const auto of = [&, correlate = correlate](std::span<const std::size_t> drawn) {
      ScoredLengths all;
      for (const std::size_t problem : drawn)
        all.add(*problems[problem]);
      return correlate(all.scores, all.lengths);
    };
    if (const auto interval = learn::bootstrap(problems.size(), of, std::min(resamples, 400), 1))
      set.figures.push_back({name, *interval});
  }
}

Result<EvalSet> figures_of(const std::string& name,
                           const Problems& problems,
                           const std::vector<std::int64_t>& ks,
                           double pass_score,
                           int resamples) {
  EvalSet set{name, problems.size(), {}};
  const auto add = [&](std::string figure, const auto& of_problem) -> Result<void> {
    std::vector<double> values;
    for (const EvalProblem* problem : problems)
      values.push_back(of_problem(*problem));
    TROUPE_TRY_ASSIGN(interval, learn::bootstrap_mean(values, resamples, 1));
    set.figures.push_back({std::move(figure), interval});
    return {};
  };
  for (const std::int64_t k : ks) {
    TROUPE_TRY(add("pass@" + std::to_string(k), [&](const EvalProblem& problem) {
      const auto right = std::count_if(problem.scores.begin(), problem.scores.end(),
                                       [&](double score) { return score >= pass_score; });
      return learn::pass_at_k(std::ssize(problem.scores), right, k);
    }));
  }
  for (const std::int64_t k : ks) {
    if (k == 1) continue;  // pass@1
    TROUPE_TRY(add("maj@" + std::to_string(k), [&](const EvalProblem& problem) {
      std::vector<double> passed;
      for (const double score : problem.scores)
        passed.push_back(score >= pass_score ? 1 : 0);
      return learn::majority_at_k(problem.answers, passed, k);
    }));
  }
  TROUPE_TRY(add("reward", [](const EvalProblem& p) { return mean_of(p.scores); }));
  TROUPE_TRY(add("truncated_rate", [](const EvalProblem& p) { return mean_of(p.cut); }));
  TROUPE_TRY(add("response_length", [](const EvalProblem& p) { return mean_of(p.lengths); }));
  if (!problems.empty() && !problems.front()->rated.empty()) {
    TROUPE_TRY(add("reward_model", [](const EvalProblem& p) { return mean_of(p.rated); }));
  }
  add_correlations(problems, resamples, set);
  return set;
}

Result<std::vector<nlohmann::json>> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return core::fail(core::ErrorCode::kData, "no evaluation at " + file.string());
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("rewards") || !object["rewards"].is_array()) {
      return core::fail(
          core::ErrorCode::kData,
          file.string() + ":" + std::to_string(lines.size() + 1) + ": not a line of an evaluation");
    }
    lines.push_back(std::move(object));
  }
  return lines;
}

// Beginnings of metrics' names, of which each belongs to one set or one source of a set.
class Prefixes {
 public:
  // "eval/NAME/", or "eval/NAME-2/" where another has that; "eval/" for no name.
  std::string claim(const std::string& name) {
    std::string own = name;
    for (int i = 2; !taken_.insert(own).second; ++i)
      own = name + "-" + std::to_string(i);
    return own.empty() ? "eval/" : "eval/" + own + "/";
  }

 private:
  std::set<std::string> taken_;
};

// The metrics of the problems of a set, which has claimed `prefix`.
Result<void> add_metrics(const std::vector<EvalProblem>& problems,
                         double pass_score,
                         const std::string& prefix,
                         Prefixes& prefixes,
                         actors::controller::Metrics& metrics) {
  std::int64_t fewest = std::ssize(problems.front().scores);
  for (const EvalProblem& problem : problems)
    fewest = std::min(fewest, std::ssize(problem.scores));
  std::vector<std::int64_t> ks = {1};
  if (fewest > 1) ks.push_back(fewest);
  TROUPE_TRY_ASSIGN(sets, eval_figures(problems, ks, pass_score, 100));
  for (const EvalSet& set : sets) {
    const std::string& name = problems.front().set;
    const std::string own =
        set.name.empty() ? prefix : prefixes.claim(name.empty() ? set.name : name + "/" + set.name);
    for (const EvalFigure& figure : set.figures)
      metrics.emplace_back(own + figure.name, figure.value.mean);
  }
  return {};
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
  TROUPE_TRY_ASSIGN(first, figures_of("", all, ks, pass_score, resamples));
  sets.push_back(std::move(first));
  for (const auto& [name, some] : sources) {
    TROUPE_TRY_ASSIGN(set, figures_of(name, some, ks, pass_score, resamples));
    sets.push_back(std::move(set));
  }
  return sets;
}

Result<actors::controller::Metrics> evaluation_metrics(const std::vector<EvalProblem>& problems,
                                                       double pass_score) {
  actors::controller::Metrics metrics;
  std::vector<std::string> names;  // in the order of the sets
  std::map<std::string, std::vector<EvalProblem>> of_set;
  for (const EvalProblem& problem : problems) {
    auto& own = of_set[problem.set];
    if (own.empty()) names.push_back(problem.set);
    own.push_back(problem);
  }
  // Sets first: their names are the configuration's, those of sources come with the rows.
  Prefixes prefixes;
  std::map<std::string, std::string> prefix_of;
  for (const std::string& name : names)
    prefix_of[name] = prefixes.claim(name);
  for (const std::string& name : names)
    TROUPE_TRY(add_metrics(of_set[name], pass_score, prefix_of[name], prefixes, metrics));
  return metrics;
}

Result<std::vector<EvalProblem>> read_problems(const std::filesystem::path& file,
                                               const AnswerRules& answers) {
  std::vector<EvalProblem> problems;
  TROUPE_TRY_ASSIGN(lines, lines_of(file));
  for (const nlohmann::json& object : lines) {
    if (object.value("mode", "") != "sampled") continue;
    EvalProblem problem;
    problem.set = object.value("set", "");
    problem.id = object.value("prompt_id", std::uint64_t{0});
    const auto found = answers.find(problem.set);
    const AnswerRule how = found == answers.end() ? AnswerRule() : found->second;
    problem.source = object.value("datasource", "");
    problem.scores = object["rewards"].get<std::vector<double>>();
    for (const auto& response : object.value("responses", nlohmann::json::array()))
      problem.answers.push_back(answer_of(how.rule, how.pattern, response.get<std::string>()));
    for (const auto& reason : object.value("finish_reasons", nlohmann::json::array()))
      problem.cut.push_back(reason == "length");
    problem.lengths = object.value("tokens", std::vector<double>{});
    problems.push_back(std::move(problem));
  }
  return problems;
}

std::uint64_t evaluations_in(const std::filesystem::path& metrics, std::uint64_t done) {
  std::ifstream in(metrics);
  std::uint64_t rows = 0, evaluations = 0;
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || row.value("step", std::uint64_t{0}) != done) continue;
    ++rows;
    evaluations += row.contains("time/eval") ? 1 : 0;
  }
  return rows == 0 ? 2 : std::min<std::uint64_t>(evaluations, 2);
}

Result<std::map<std::string, ProblemMeans>> read_problem_means(const std::filesystem::path& file) {
  std::map<std::string, ProblemMeans> means;
  TROUPE_TRY_ASSIGN(lines, lines_of(file));
  for (const nlohmann::json& object : lines) {
    ProblemMeans& set = means[object.value("set", "")];
    auto& place = object.value("mode", "") == "greedy" ? set.greedy : set.sampled;
    place.push_back(mean_of(object["rewards"].get<std::vector<double>>()));
  }
  return means;
}

}  // namespace troupe::session
