// Runs the data rows of one micro-batch through a model. Builds the forward plan for their kind
// (sequences, single answers, pairs of answers to a shared prompt, or choices at placeholders) and
// computes either the loss and its gradient, or the log-probs or scores alone. Reuses its plan and
// scratch. Part of supervised_trainer.cpp, on whose thread it runs; numeric work on the team.
#pragma once

#include "runtime/core/check.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/step_failure.hpp"
#include "runtime/learn/supervised/choice_loss.hpp"
#include "runtime/learn/supervised/loss.hpp"
#include "runtime/learn/supervised/row_checks.hpp"
#include "runtime/learn/supervised/row_values.hpp"
#include "runtime/learn/supervised/teacher_pass.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/sequence_plan.hpp"
#include "runtime/model/train_logprobs.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::learn {

class RowRunner {
 public:
  // `forward` and `team` outlive this object. With teachers all rows of a call have the same.
  RowRunner(const LossSettings& settings,
            Teachers teachers,
            core::TeamRunner& team,
            model::TrainForward& forward)
      : settings_(settings),
        team_(team),
        forward_(forward),
        teacher_(settings_, std::move(teachers), team) {}

  // Number of tokens of the data row that go through the model.
  std::int64_t cost(const data::SupervisedRow& row) const {
    return row_cost(*settings_.method, row);
  }

  // The loss inputs that come from the rows alone; reference log-probs are left empty.
  RowFacts facts_of(std::span<const data::SupervisedRow> rows) const {
    RowFacts facts;
    for (const data::SupervisedRow& row : rows) {
      facts.first_tokens.push_back(targets_of(row));
      facts.second_tokens.push_back(static_cast<double>(row.rejected.size()));
      if (settings_.method->scores) facts.margin.push_back(row.margin);
      if (settings_.method->rated()) facts.desirable.push_back(row.desirable ? 1 : 0);
    }
    return facts;
  }

  // Adds the gradient of the micro-batch's share of the loss and returns its figures. If the loss
  // is not finite, adds no gradient.
  core::Result<RowFigures> learn(const model::PackedWeights& weights,
                                 std::span<const data::SupervisedRow> rows,
                                 const RowFacts& facts,
                                 const StepTotals& totals) {
    try {
      TROUPE_TRY(build(weights.spec(), rows, totals.choices));
      const c10::AutoGradMode with_grad(true);
      if (settings_.method->steps()) {
        const auto out = forward_.logprobs(weights, plan_.plan, plan_.targets, 1.0f, false);
        RowFigures figures;
        const at::Tensor loss = choice_loss(settings_, wanted_choices(rows, totals.choices), totals,
                                            out.logprobs.to(at::kDouble), figures);
        if (std::isfinite(figures.loss)) loss.backward();
        return figures;
      }
      const auto count = static_cast<std::int64_t>(rows.size());
      at::Tensor values, divergences;  // [2 rows]
      if (settings_.method->scores) {
        values = forward_.values(weights, plan_.plan).to(at::kDouble);
      } else {
        TROUPE_TRY_ASSIGN(teacher, teacher_.run(rows));
        const auto out = forward_.logprobs(weights, plan_.plan, plan_.targets, 1.0f, false,
                                           teacher ? &*teacher : nullptr);
        const auto slots = at::from_blob(slots_.data(), {std::ssize(slots_)}, at::kLong).clone();
        const auto by_slot = [&](const at::Tensor& tokens) {
          return at::zeros({2 * count}, at::kDouble).index_add(0, slots, tokens.to(at::kDouble));
        };
        values = by_slot(out.logprobs);
        if (teacher) divergences = by_slot(out.divergences);
      }
      const at::Tensor by_row = values.view({count, 2});
      at::Tensor second, divergence;
      if (settings_.method->pairs()) second = by_row.select(1, 1);
      if (divergences.defined()) divergence = divergences.view({count, 2}).select(1, 0);
      RowFigures figures;
      const at::Tensor loss = supervised_loss(settings_, facts, totals, by_row.select(1, 0), second,
                                              divergence, figures);
      if (std::isfinite(figures.loss)) loss.backward();
      return figures;
    } catch (const std::exception& error) {
      return step_failure(error, "in a training step");
    }
  }

  // Log-probs of all `choices` at every placeholder of the rows, without gradients.
  core::Result<std::vector<float>> choice_logprobs(const model::PackedWeights& weights,
                                                   std::span<const data::SupervisedRow> rows,
                                                   std::span<const std::int32_t> choices) {
    TROUPE_TRY(build(weights.spec(), rows, choices));
    std::vector<float> logprobs(static_cast<std::size_t>(plan_.targets.size()));
    model::score_logprobs(team_, weights, plan_.plan, plan_.targets, 1.0f, scratch_, logprobs);
    return logprobs;
  }

  // The values of the rows under `weights`, without gradients.
  core::Result<RowValues> score(const model::PackedWeights& weights,
                                std::span<const data::SupervisedRow> rows) {
    TROUPE_TRY(build(weights.spec(), rows, {}));
    RowValues out;
    out.resize(*settings_.method, rows.size());
    if (settings_.method->scores) {
      std::vector<float> values(plan_.plan.logit_rows.size());
      model::score_values(team_, weights, plan_.plan, scratch_, values);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        out.first[i] = values[2 * i];
        out.second[i] = values[2 * i + 1];
      }
      return out;
    }
    std::vector<float> logprobs(slots_.size());
    TROUPE_TRY_ASSIGN(teacher, teacher_.run(rows));
    if (teacher) {
      std::vector<model::DivergenceRow> divergences;
      model::score_divergences(team_, weights, plan_.plan, plan_.targets, *teacher, scratch_,
                               logprobs, divergences);
      for (std::size_t t = 0; t < slots_.size(); ++t) {
        const auto row = static_cast<std::size_t>(slots_[t] / 2);
        out.divergence[row] += divergences[t].divergence;
        out.agreed[row] += divergences[t].agrees ? 1 : 0;
      }
    } else {
      model::score_logprobs(team_, weights, plan_.plan, plan_.targets, 1.0f, scratch_, logprobs);
    }
    for (std::size_t t = 0; t < slots_.size(); ++t) {
      const auto row = static_cast<std::size_t>(slots_[t] / 2);
      (slots_[t] % 2 == 0 ? out.first : out.second)[row] += logprobs[t];
    }
    return out;
  }

 private:
  static model::SampleGroup group_of(const data::SupervisedRow& row) {
    model::SampleGroup group{row.prompt, {row.answer}};
    if (!row.rejected.empty()) group.responses.push_back(row.rejected);
    return group;
  }

  // Number of tokens of the first answer that the loss reads.
  static double targets_of(const data::SupervisedRow& row) {
    if (row.learn.empty()) return static_cast<double>(row.answer.size());
    return static_cast<double>(row.learn.size()) -
           static_cast<double>(std::count(row.learn.begin(), row.learn.end(), std::uint8_t{0}));
  }

  // Scores are read at an answer's last token, log-probs wherever an answer's token is predicted.
  model::GroupRows group_rows() const {
    return settings_.method->scores ? model::GroupRows::kLast : model::GroupRows::kPredicting;
  }

  core::Result<void> build(const model::ModelSpec& spec,
                           std::span<const data::SupervisedRow> rows,
                           std::span<const std::int32_t> choices) {
    const Method& method = *settings_.method;
    if (method.sequences() || method.steps()) {
      TROUPE_TRY(
          method.steps()
              ? model::build_choice_plan(sequences_of(rows), choices, spec, team_.size(), plan_)
              : model::build_sequence_plan(sequences_of(rows), spec, team_.size(), plan_));
    } else {
      std::vector<model::SampleGroup> groups;
      for (const data::SupervisedRow& row : rows)
        groups.push_back(group_of(row));
      TROUPE_TRY(model::build_group_plan(groups, spec, team_.size(), plan_, group_rows()));
    }
    plan_.plan.place(team_.memory());
    find_slots(rows);
    return {};
  }

  // Fills slots_, which says to which sum each target's log-prob belongs: 2 i for the first answer
  // of data row i, 2 i + 1 for its second.
  void find_slots(std::span<const data::SupervisedRow> rows) {
    slots_.clear();
    if (settings_.method->scores || settings_.method->steps()) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto slot = static_cast<std::int64_t>(2 * i);
      const auto first = static_cast<std::size_t>(targets_of(rows[i]));
      slots_.insert(slots_.end(), first, slot);
      slots_.insert(slots_.end(), rows[i].rejected.size(), slot + 1);
    }
    TROUPE_CHECK(std::ssize(slots_) == plan_.targets.size(), "the plan has the rows' targets");
  }

  const LossSettings settings_;
  core::TeamRunner& team_;
  model::TrainForward& forward_;
  TeacherPass teacher_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
  std::vector<std::int64_t> slots_;  // one per target of plan_; empty for scores and choices
};

}  // namespace troupe::learn
