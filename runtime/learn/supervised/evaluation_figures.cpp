#include "runtime/learn/supervised/evaluation_figures.hpp"

#include "runtime/learn/supervised/picked.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::learn {
namespace {

// The figures that compare good with bad. `prefix`: "eval/", or that of a category.
void add_comparisons(const LossSettings& settings,
                     const RowFigures& figures,
                     double z,
                     const std::string& prefix,
                     Metrics& to) {
  for (const auto& [name, value] : row_metrics(settings, figures, z)) {
    if (name == "rewards/accuracies") to.emplace_back(prefix + "accuracy", value);
    if (name == "rewards/margins") to.emplace_back(prefix + "margins", value);
  }
}

void add_categories(const LossSettings& settings,
                    std::span<const data::SupervisedRow> rows,
                    const RowFacts& all,
                    const RowValues& values,
                    Metrics& to) {
  std::map<std::string_view, std::vector<std::size_t>> categories;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].category.empty()) categories[rows[i].category].push_back(i);
  for (const auto& [name, places] : categories) {
    const RowFacts own = chosen(all, places);
    StepTotals total;
    total.rows = static_cast<double>(places.size());
    total.first_tokens = sum_of(own.first_tokens);
    const auto result = supervised_gradient(settings, own, total, picked(values.first, places),
                                            picked(values.second, places));
    const std::string prefix = "eval/" + std::string(name) + "/";
    to.emplace_back(prefix + "pairs", total.rows);
    add_comparisons(settings, result.figures, total.z, prefix, to);
  }
}

void add_scores(const RowFigures& f, SupervisedEvaluation& out) {
  const double count = f.chosen_rows + f.rejected_rows;
  out.score_mean = (f.chosen + f.rejected) / count;
  // With n - 1 as the divisor and at least 1e-8, as OpenRLHF stores it.
  const double squares = f.chosen_squares + f.rejected_squares;
  const double spread = squares - count * out.score_mean * out.score_mean;
  out.score_std = std::max(std::sqrt(std::max(spread, 0.0) / (count - 1)), 1e-8);
  out.metrics.emplace_back("eval/score_mean", out.score_mean);
  out.metrics.emplace_back("eval/score_std", out.score_std);
}

}  // namespace

SupervisedEvaluation evaluation_of(const LossSettings& settings,
                                   std::span<const data::SupervisedRow> rows,
                                   const RowFacts& all,
                                   const StepTotals& total,
                                   const RowValues& values) {
  const Method& method = *settings.method;
  const SupervisedGradient result =
      supervised_gradient(settings, all, total, values.first, values.second, values.divergence);
  const RowFigures& f = result.figures;
  SupervisedEvaluation out;
  out.metrics.emplace_back("eval/loss", result.loss);
  const double tokens = std::max(f.first_tokens, 1.0);
  if (method.teacher) {
    out.metrics.emplace_back("eval/divergence", f.divergence / tokens);
    out.metrics.emplace_back("eval/agreement", sum_of(values.agreed) / tokens);
  }
  if (method.sequences()) {
    out.metrics.emplace_back("eval/perplexity", std::exp(f.nll / tokens));
    return out;
  }
  add_comparisons(settings, f, total.z, "eval/", out.metrics);
  if (method.pairs()) add_categories(settings, rows, all, values, out.metrics);
  if (method.scores) add_scores(f, out);
  return out;
}

SupervisedEvaluation evaluation_of(const LossSettings& settings, const RowFigures& figures) {
  SupervisedEvaluation out;
  out.metrics.emplace_back("eval/loss", figures.loss);
  add_comparisons(settings, figures, 0, "eval/", out.metrics);
  return out;
}

}  // namespace troupe::learn
