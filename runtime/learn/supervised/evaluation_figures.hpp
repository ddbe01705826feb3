// The figures of an evaluation, from the values of its rows. Pure functions; any thread.
#pragma once

#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/loss.hpp"
#include "runtime/learn/supervised/row_values.hpp"
#include "runtime/learn/supervised/settings.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"

#include <span>

namespace troupe::learn {

// For all methods but prm: eval/loss, then eval/perplexity, or eval/accuracy, eval/margins and the
// same of each category of pairs (eval/CATEGORY/...), sorted by name; of reward models the mean and
// the deviation of the scores. `all` and `values` have one entry a row.
SupervisedEvaluation evaluation_of(const LossSettings& settings,
                                   std::span<const data::SupervisedRow> rows,
                                   const RowFacts& all,
                                   const StepTotals& total,
                                   const RowValues& values);

// For prm, whose figures choice_loss has summed: eval/loss, eval/accuracy, eval/margins.
SupervisedEvaluation evaluation_of(const LossSettings& settings, const RowFigures& figures);

}  // namespace troupe::learn
