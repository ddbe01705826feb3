#include "runtime/learn/supervised/settings.hpp"

namespace troupe::learn {
namespace {

// "sigmoid, aot or exo_pair": the losses that `has` is true of.
std::string losses_that(bool (*has)(const PairLoss& row)) {
  std::vector<std::string> names;
  for (const PairLoss& row : PairLoss::all())
    if (has(row)) names.emplace_back(row.name);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

}  // namespace

const PairLoss* LossSettings::pair_row() const {
  if (method->pair_loss.empty()) return nullptr;
  return pair_loss ? &**pair_loss : &*Chosen<PairLoss>(method->pair_loss);
}

StepWide LossSettings::step_wide() const {
  const PairLoss* const row = pair_row();
  return row == nullptr ? method->step_wide : row->step_wide;
}

std::optional<core::Refusal> refusal(const LossSettings& loss) {
  const PairLoss* const row = loss.pair_row();
  if (row == nullptr) return std::nullopt;
  const std::string name(row->name);
  if (row->smoothing == Smoothing::kNone && loss.dpo.label_smoothing > 0) {
    return core::Refusal{"dpo.label_smoothing", "the loss " + name + " smooths no labels",
                         "give 0, or --dpo.loss " + losses_that([](const PairLoss& one) {
                           return one.smoothing != Smoothing::kNone;
                         })};
  }
  if (row->smoothing == Smoothing::kNeeded && loss.dpo.label_smoothing == 0) {
    return core::Refusal{"dpo.label_smoothing",
                         "the loss " + name + " needs the share of wrong labels",
                         "give it, above 0 and below 0.5"};
  }
  if (loss.dpo.length_mean && !row->length_mean) {
    return core::Refusal{"dpo.length_mean", "the loss " + name + " is one of sums",
                         "give false, or --dpo.loss " +
                             losses_that([](const PairLoss& one) { return one.length_mean; })};
  }
  return std::nullopt;
}

}  // namespace troupe::learn
