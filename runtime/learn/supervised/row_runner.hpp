// Runs the data rows of one micro-batch through a model. Builds the forward plan for their kind
// (sequences, answers to shared prompts, or choices at placeholders) and
// computes either the loss and its gradient, or the log-probs or scores alone. Reuses its plan and
// scratch. Part of supervised_trainer.cpp, on whose thread it runs; numeric work on the team.
#pragma once

#include "runtime/core/check.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/answer_groups.hpp"
#include "runtime/learn/supervised/choice_loss.hpp"
#include "runtime/learn/supervised/loss.hpp"
#include "runtime/learn/supervised/row_checks.hpp"
#include "runtime/learn/supervised/row_values.hpp"
#include "runtime/learn/supervised/teacher_pass.hpp"
#include "runtime/learn/torch/step_failure.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/sequence_plan.hpp"
#include "runtime/model/train_logprobs.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
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
      at::Tensor values, divergences;  // [answers]
      if (settings_.method->scores) {
        values = forward_.values(weights, plan_.plan).to(at::kDouble);
      } else {
        TROUPE_TRY_ASSIGN(teacher, teacher_.run(rows));
        const auto out = forward_.logprobs(weights, plan_.plan, plan_.targets, 1.0f, false,
                                           teacher ? &*teacher : nullptr);
        const at::Tensor slots = index_of(slots_);
        const auto by_slot = [&](const at::Tensor& tokens) {
          return at::zeros({answers_.answers}, at::kDouble)
              .index_add(0, slots, tokens.to(at::kDouble));
        };
        values = by_slot(out.logprobs);
        if (teacher) divergences = by_slot(out.divergences);
      }
      const auto of = [](const at::Tensor& answers, std::vector<std::int64_t>& places) {
        return answers.index_select(0, index_of(places));
      };
      at::Tensor second, divergence;
      if (settings_.method->pairs()) second = of(values, answers_.second);
      if (divergences.defined()) divergence = of(divergences, answers_.first);
      RowFigures figures;
      const at::Tensor loss = supervised_loss(settings_, facts, totals, of(values, answers_.first),
                                              second, divergence, figures);
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
    const auto count = static_cast<std::size_t>(answers_.answers);
    RowValues answers{std::vector<double>(count, 0)};  // `first` has one entry per answer
    if (settings_.method->scores) {
      std::vector<float> values(plan_.plan.logit_rows.size());
      model::score_values(team_, weights, plan_.plan, scratch_, values);
      answers.first.assign(values.begin(), values.end());
      return by_row(answers);
    }
    std::vector<float> logprobs(slots_.size());
    TROUPE_TRY_ASSIGN(teacher, teacher_.run(rows));
    if (teacher) {
      answers.divergence.assign(count, 0);
      answers.agreed.assign(count, 0);
      std::vector<model::DivergenceRow> divergences;
      model::score_divergences(team_, weights, plan_.plan, plan_.targets, *teacher, scratch_,
                               logprobs, divergences);
      for (std::size_t t = 0; t < slots_.size(); ++t) {
        const auto answer = static_cast<std::size_t>(slots_[t]);
        answers.divergence[answer] += divergences[t].divergence;
        answers.agreed[answer] += divergences[t].agrees ? 1 : 0;
      }
    } else {
      model::score_logprobs(team_, weights, plan_.plan, plan_.targets, 1.0f, scratch_, logprobs);
    }
    for (std::size_t t = 0; t < slots_.size(); ++t)
      answers.first[static_cast<std::size_t>(slots_[t])] += logprobs[t];
    return by_row(answers);
  }

 private:
  static at::Tensor index_of(std::vector<std::int64_t>& places) {
    return at::from_blob(places.data(), {std::ssize(places)}, at::kLong).clone();
  }

  // The values of the rows whose answers have the values `answers`.
  RowValues by_row(const RowValues& answers) const {
    const auto of = [](const std::vector<double>& from, const std::vector<std::int64_t>& places) {
      std::vector<double> out;
      for (const std::int64_t place : places)
        out.push_back(from[static_cast<std::size_t>(place)]);
      return out;
    };
    RowValues out{of(answers.first, answers_.first), of(answers.first, answers_.second)};
    if (!answers.divergence.empty()) {
      out.divergence = of(answers.divergence, answers_.first);
      out.agreed = of(answers.agreed, answers_.first);
    }
    return out;
  }

  // Number of tokens of the first answer that the loss reads.
  static double targets_of(const data::SupervisedRow& row) {
    if (row.learn.empty()) return static_cast<double>(row.answer.size());
    return static_cast<double>(row.learn.size()) -
           static_cast<double>(std::count(row.learn.begin(), row.learn.end(), std::uint8_t{0}));
  }

  core::Result<void> build(const model::ModelSpec& spec,
                           std::span<const data::SupervisedRow> rows,
                           std::span<const std::int32_t> choices) {
    const Method& method = *settings_.method;
    answers_ = {};
    if (method.sequences() || method.steps()) {
      TROUPE_TRY(
          method.steps()
              ? model::build_choice_plan(sequences_of(rows), choices, spec, team_.size(), plan_)
              : model::build_sequence_plan(sequences_of(rows), spec, team_.size(), plan_));
      answers_.answers = std::ssize(rows);
      answers_.first.resize(rows.size());
      std::iota(answers_.first.begin(), answers_.first.end(), std::int64_t{0});
    } else {
      answers_ = group_answers(rows);
      TROUPE_TRY(
          model::build_group_plan(answers_.groups, spec, team_.size(), plan_, group_rows(method)));
    }
    plan_.plan.place(team_.memory());
    find_slots(rows);
    return {};
  }

  // Fills slots_, which says to which answer's sum each target's log-prob belongs.
  void find_slots(std::span<const data::SupervisedRow> rows) {
    slots_.clear();
    if (settings_.method->scores || settings_.method->steps()) return;
    std::int64_t answer = 0;
    const auto add = [&](std::size_t targets) { slots_.insert(slots_.end(), targets, answer++); };
    if (answers_.groups.empty()) {
      for (const data::SupervisedRow& row : rows)
        add(static_cast<std::size_t>(targets_of(row)));
    }
    for (const model::SampleGroup& group : answers_.groups) {
      for (const auto response : group.responses)
        add(response.size());
    }
    TROUPE_CHECK(std::ssize(slots_) == plan_.targets.size(), "the plan has the rows' targets");
  }

  const LossSettings settings_;
  core::TeamRunner& team_;
  model::TrainForward& forward_;
  TeacherPass teacher_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
  AnswerGroups answers_;             // of the rows of plan_; without groups: the rows are sequences
  std::vector<std::int64_t> slots_;  // one per target of plan_; empty for scores and choices
};

}  // namespace troupe::learn
