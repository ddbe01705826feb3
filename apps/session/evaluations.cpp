#include "apps/session/evaluations.hpp"

#include "apps/session/reward_flags.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>

namespace troupe::app {
namespace {

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

core::Result<std::vector<nlohmann::json>> lines_of(const std::filesystem::path& file) {
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

}  // namespace

double Evaluation::sampled_mean() const {
  return mean_of(sampled);
}
double Evaluation::greedy_mean() const {
  return mean_of(greedy);
}

core::Result<Evaluation> read_evaluation(const std::filesystem::path& file, std::uint64_t step) {
  Evaluation evaluation;
  evaluation.step = step;
  TROUPE_TRY_ASSIGN(lines, lines_of(file));
  for (const nlohmann::json& object : lines) {
    std::vector<double> rewards;
    for (const auto& reward : object["rewards"])
      rewards.push_back(reward.get<double>());
    auto& place = object.value("mode", "") == "greedy" ? evaluation.greedy : evaluation.sampled;
    place.push_back(mean_of(rewards));
  }
  return evaluation;
}

core::Result<std::vector<EvalProblem>> read_problems(const std::filesystem::path& file,
                                                     const std::string& rule,
                                                     const std::string& pattern) {
  std::vector<EvalProblem> problems;
  TROUPE_TRY_ASSIGN(lines, lines_of(file));
  for (const nlohmann::json& object : lines) {
    if (object.value("mode", "") != "sampled") continue;
    EvalProblem problem;
    problem.source = object.value("datasource", "");
    for (const auto& reward : object["rewards"])
      problem.scores.push_back(reward.get<double>());
    for (const auto& response : object.value("responses", nlohmann::json::array()))
      problem.answers.push_back(answer_of(rule, pattern, response.get<std::string>()));
    for (const auto& reason : object.value("finish_reasons", nlohmann::json::array()))
      problem.cut.push_back(reason == "length");
    for (const auto& tokens : object.value("tokens", nlohmann::json::array()))
      problem.lengths.push_back(tokens.get<double>());
    problems.push_back(std::move(problem));
  }
  return problems;
}

core::Result<actors::Metrics> evaluation_metrics(const std::vector<EvalProblem>& problems,
                                                 double pass_score) {
  std::int64_t fewest = problems.empty() ? 1 : std::ssize(problems.front().scores);
  for (const EvalProblem& problem : problems)
    fewest = std::min(fewest, std::ssize(problem.scores));
  std::vector<std::int64_t> ks = {1};
  if (fewest > 1) ks.push_back(fewest);
  TROUPE_TRY_ASSIGN(sets, eval_figures(problems, ks, pass_score, 100));
  actors::Metrics metrics;
  for (const EvalSet& set : sets) {
    const std::string prefix = "eval/" + (set.name.empty() ? "" : set.name + "/");
    for (const EvalFigure& figure : set.figures)
      metrics.emplace_back(prefix + figure.name, figure.value.mean);
  }
  return metrics;
}

}  // namespace troupe::app
