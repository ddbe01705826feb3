// Runs the data rows of one micro-batch through their frozen teacher, up to its head. Reuses its
// plan and scratch. Part of RowRunner, on whose thread it runs; numeric work on the team.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/data/supervised_dataset.hpp"
#include "runtime/learn/supervised/settings.hpp"
#include "runtime/model/divergence.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/sequence_plan.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe::learn {

// The rows' whole texts with the tokens that are learned.
inline std::vector<model::Sequence> sequences_of(std::span<const data::SupervisedRow> rows) {
  std::vector<model::Sequence> sequences;
  for (const data::SupervisedRow& row : rows)
    sequences.push_back({row.answer, row.learn});
  return sequences;
}

using Teachers = std::vector<std::shared_ptr<const model::PackedWeights>>;

class TeacherPass {
 public:
  // `settings` and `team` outlive this object.
  TeacherPass(const LossSettings& settings, Teachers teachers, core::TeamRunner& team)
      : settings_(settings), teachers_(std::move(teachers)), team_(team) {}

  // Nothing where the method has no teacher; else good until the next call. The rows have the same
  // teacher. Error kInvalidArgument: a row of a teacher that there is not.
  core::Result<std::optional<model::TeacherRows>> run(std::span<const data::SupervisedRow> rows) {
    if (!settings_.method->teacher) return std::optional<model::TeacherRows>();
    const std::size_t place = rows.front().teacher;
    if (place >= teachers_.size()) {
      return core::fail(core::ErrorCode::kInvalidArgument, rows.front().where() + " has teacher " +
                                                               std::to_string(place + 1) + ", of " +
                                                               std::to_string(teachers_.size()));
    }
    const model::PackedWeights& teacher = *teachers_[place];
    TROUPE_TRY(model::build_sequence_plan(sequences_of(rows), teacher.spec(), team_.size(), plan_));
    plan_.plan.place(team_.memory());
    const float* const head_in = model::score_head_in(team_, teacher, plan_.plan, scratch_);
    return std::optional(model::TeacherRows{&teacher, head_in,
                                            static_cast<float>(settings_.distill.beta),
                                            static_cast<float>(settings_.distill.temperature)});
  }

 private:
  const LossSettings& settings_;
  const Teachers teachers_;
  core::TeamRunner& team_;
  model::GroupPlan plan_;
  model::ScoreScratch scratch_;
};

}  // namespace troupe::learn
