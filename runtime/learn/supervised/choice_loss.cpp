#include "runtime/learn/supervised/choice_loss.hpp"

#include "runtime/core/check.hpp"
#include "runtime/learn/torch/tensors.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

std::size_t likeliest(std::span<const double> of) {
  return static_cast<std::size_t>(std::max_element(of.begin(), of.end()) - of.begin());
}

void note_choices(const LossSettings& settings,
                  std::span<const double> wanted,
                  std::span<const double> logprobs,
                  std::size_t choices,
                  RowFigures& figures) {
  for (std::size_t begin = 0; begin < wanted.size(); begin += choices) {
    const auto label = wanted.subspan(begin, choices);
    const auto own = logprobs.subspan(begin, choices);
    figures.rows += 1;
    figures.correct += likeliest(own) == likeliest(label) ? 1 : 0;
    if (settings.reward_tokens.empty()) continue;
    const double first = std::exp(own[0]);
    const bool good = label[0] >= 0.5;
    (good ? figures.chosen : figures.rejected) += first;
    (good ? figures.chosen_rows : figures.rejected_rows) += 1;
    (good ? figures.chosen_squares : figures.rejected_squares) += first * first;
  }
}

}  // namespace

std::vector<std::int32_t> choices_of(const LossSettings& settings,
                                     std::span<const data::SupervisedRow> rows) {
  if (!settings.reward_tokens.empty()) return settings.reward_tokens;
  std::vector<std::int32_t> labels;
  for (const data::SupervisedRow& row : rows)
    labels.insert(labels.end(), row.labels.begin(), row.labels.end());
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

std::vector<double> wanted_choices(std::span<const data::SupervisedRow> rows,
                                   std::span<const std::int32_t> choices) {
  std::vector<double> wanted;
  for (const data::SupervisedRow& row : rows) {
    for (const std::int32_t label : row.labels) {
      TROUPE_CHECK(std::find(choices.begin(), choices.end(), label) != choices.end(),
                   "a label is one of the choices");
      for (const std::int32_t choice : choices)
        wanted.push_back(choice == label ? 1 : 0);
    }
    TROUPE_CHECK(row.shares.empty() || choices.size() == 2, "soft labels are of two tokens");
    for (const float share : row.shares) {
      wanted.push_back(share);
      wanted.push_back(1 - static_cast<double>(share));
    }
  }
  return wanted;
}

at::Tensor choice_loss(const LossSettings& settings,
                       std::span<const double> wanted,
                       const StepTotals& totals,
                       const at::Tensor& logprobs,
                       RowFigures& figures) {
  const auto choices = static_cast<std::int64_t>(totals.choices.size());
  TROUPE_CHECK(logprobs.numel() == std::ssize(wanted), "one wanted probability for each log-prob");
  at::Tensor chosen = logprobs.view({-1, choices});
  if (!settings.reward_tokens.empty()) chosen = at::log_softmax(chosen, 1);
  const at::Tensor loss =
      -(tensor_of(wanted).view({-1, choices}) * chosen).sum() / std::max(totals.first_tokens, 1.0);
  RowFigures own;
  note_choices(settings, wanted, values_of(chosen), totals.choices.size(), own);
  own.first_tokens = own.rows;
  own.loss = loss.item<double>();
  figures.add(own);
  return loss;
}

}  // namespace troupe::learn
