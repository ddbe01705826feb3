// Runs the rows of one micro-batch through a model: builds the plan of their kind (sequences, pairs
// behind their shared prompt, answers, last tokens), and gives the loss with its gradient or the
// plain values. Reuses its plan and scratch. One owner, one thread; numeric work on the team.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/loss.hpp"
#include "runtime/learn/supervised/settings.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::learn {

// What a model says of rows: sums of log-probs, or scores. `second` is empty for single answers.
struct RowValues {
  std::vector<double> first, second;
};

class RowRunner {
 public:
  // `forward` and `team` outlive this object.
  RowRunner(const LossSettings& settings, core::TeamRunner& team, model::TrainForward& forward)
      : settings_(settings), team_(team), forward_(forward) {}

  // Plan rows that a row takes.
  std::int64_t cost(const data::SupervisedRow& row) const;

  // Adds the gradient of the micro-batch's share of the loss and returns its figures. A loss that
  // is not finite comes back as it is, without a gradient.
  core::Result<RowFigures> learn(const model::PackedWeights& weights,
                                 std::span<const data::SupervisedRow> rows,
                                 const RowFacts& facts,
                                 const StepTotals& totals);

  core::Result<RowValues> score(const model::PackedWeights& weights,
                                std::span<const data::SupervisedRow> rows);

 private:
  core::Result<void> build(const model::ModelSpec& spec, std::span<const data::SupervisedRow> rows);
  // A score is that of an answer's last token.
  model::GroupRows group_rows() const {
    return settings_.method->scores ? model::GroupRows::kLast : model::GroupRows::kPredicting;
  }
  // Where the log-prob of each target is added: 2 row for first, 2 row + 1 for second answers.
  void find_slots(std::span<const data::SupervisedRow> rows);

  const LossSettings settings_;
  core::TeamRunner& team_;
  model::TrainForward& forward_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
  std::vector<std::int64_t> slots_;  // by target
};

// What the loss has to know about rows, without a reference.
RowFacts facts_of(const LossSettings& settings, std::span<const data::SupervisedRow> rows);

}  // namespace troupe::learn
