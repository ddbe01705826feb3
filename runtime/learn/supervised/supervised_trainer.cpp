#include "runtime/learn/supervised/supervised_trainer.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"
#include "runtime/learn/model/trainable_model.hpp"
#include "runtime/learn/ranks/input_crc.hpp"
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/supervised/answer_groups.hpp"
#include "runtime/learn/supervised/choice_loss.hpp"
#include "runtime/learn/supervised/evaluation_figures.hpp"
#include "runtime/learn/supervised/packing.hpp"
#include "runtime/learn/supervised/picked.hpp"
#include "runtime/learn/supervised/row_checks.hpp"
#include "runtime/learn/supervised/row_runner.hpp"
#include "runtime/learn/supervised/step_wide.hpp"
#include "runtime/learn/torch/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::learn {
namespace {

// What a micro-batch tells about itself.
struct SupervisedFigures {
  double loss = 0;
  double aux = 0;  // its share of the load-balancing loss of experts
  RowFigures rows;
};

class SupervisedTrainerImpl final : public SupervisedTrainer {
 public:
  SupervisedTrainerImpl(std::unique_ptr<TrainableModel> model,
                        std::shared_ptr<const model::PackedWeights> reference,
                        const SupervisedSettings& settings)
      : settings_(settings),
        model_(std::move(model)),
        runner_(settings_.loss, settings_.teachers, model_->team(), model_->forward()),
        reference_(std::move(reference)) {}

  Result<SupervisedStep> step(std::span<const data::SupervisedRow> rows) override {
    TROUPE_CHECK(!rows.empty(), "a step needs rows");
    model_->team().run([](core::Team) { kernels::flush_denormals(); });
    if (RankGroup* const ranks = model_->ranks()) {
      InputCrc given;
      for (const data::SupervisedRow& row : rows)
        given.add(row.prompt)
            .add(row.answer)
            .add(row.rejected)
            .add(row.learn)
            .add(row.labels)
            .add(row.shares);
      TROUPE_TRY(ranks->all_same(given.value()));
    }
    TROUPE_TRY_ASSIGN(all, facts(rows, kept_));
    StepTotals total = totals(all, rows);
    TROUPE_TRY_ASSIGN(values, start_values(rows));
    RunningMoments moments = moments_;
    if (settings_.loss.step_wide() == StepWide::kRunningMean) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        moments.add(values.first[i] - all.reference_first[i]);
    }
    TROUPE_TRY(read_step(rows, values, moments, all, total));
    const auto micro_batches = pack(rows, model_->lanes());
    RowFigures figures;
    double aux = 0;
    std::vector<double> costs;
    for (const auto& micro : micro_batches)
      costs.push_back(static_cast<double>(cost_of(picked(rows, micro))));
    const double all_costs = sum_of(costs);
    std::vector<StepPart> parts;
    for (const double cost : costs)
      parts.push_back({cost / all_costs});
    const auto accumulate = [&](const model::PackedWeights& weights) -> Result<double> {
      const auto run_part = [&](std::size_t part) -> Result<SupervisedFigures> {
        const auto& micro = micro_batches[part];
        SupervisedFigures own;
        TROUPE_TRY_SET(own.rows,
                       runner_.learn(weights, picked(rows, micro), chosen(all, micro), total));
        own.loss = own.rows.loss;
        own.aux = model_->aux_loss();
        return own;
      };
      TROUPE_TRY_ASSIGN(ran, model_->run_parts<SupervisedFigures>(parts, run_part));
      for (const SupervisedFigures& part : ran) {
        figures.add(part.rows);
        if (std::isfinite(part.loss)) aux += part.aux;
      }
      figures.loss += model_->aux_loss_coef() * aux;
      return figures.loss;
    };
    const auto describe = [&] {
      const std::string first = rows.front().where(), last = rows.back().where();
      return "rows " + first + (rows.size() > 1 ? " to " + last : "");
    };
    TROUPE_TRY_ASSIGN(report, model_->step(accumulate, describe));
    if (report.applied) moments_ = moments;
    SupervisedStep out;
    out.version = model_->version();
    out.applied = report.applied;
    out.micro_batches = std::ssize(micro_batches);
    for (const data::SupervisedRow& row : rows)
      out.tokens += row.tokens();
    out.targets = static_cast<std::int64_t>(
        total.first_tokens + (settings_.loss.method->pairs() ? sum_of(all.second_tokens) : 0));
    if (report.applied) {
      out.metrics.emplace_back("policy/loss", report.loss);
      out.metrics.emplace_back("policy/grad_norm", report.grad_norm);
      if (model_->aux_loss_coef() > 0) out.metrics.emplace_back("policy/aux_loss", aux);
    }
    out.metrics.emplace_back("policy/lr", report.lr);
    out.metrics.emplace_back("policy/skipped_steps", report.applied ? 0 : 1);
    if (report.applied) {
      for (auto& row : row_metrics(settings_.loss, figures, total.z))
        out.metrics.push_back(std::move(row));
    }
    return out;
  }

  Result<SupervisedEvaluation> evaluate(std::span<const data::SupervisedRow> rows) override {
    model_->team().run([](core::Team) { kernels::flush_denormals(); });
    TROUPE_TRY_ASSIGN(all, facts(rows, kept_held_out_));
    StepTotals total = totals(all, rows);
    const auto weights = model_->pass_weights();
    if (settings_.loss.method->steps()) return evaluate_choices(*weights, rows, total);
    TROUPE_TRY_ASSIGN(values, score(*weights, rows));
    TROUPE_TRY(read_step(rows, values, moments_, all, total));
    return evaluation_of(settings_.loss, rows, all, total, values);
  }

  core::Result<void> gather() override { return model_->gather(); }
  const model::ParamStore& master() const override { return model_->master(); }
  core::Version version() const override { return model_->version(); }
  void set_score_scale(double mean, double std) override { model_->set_score_scale(mean, std); }
  core::Result<void> save_model(const std::filesystem::path& folder,
                                const std::filesystem::path& tokenizer_from) const override {
    TROUPE_TRY(model_->save_model({folder, settings_.save_dtype, tokenizer_from}));
    if (!model_->has_adapter()) return {};
    return model_->write_once(
        [&] { return model_->save_adapter(folder.parent_path() / "adapter", settings_.model); });
  }
  core::Result<void> save_state(const std::filesystem::path& folder) const override {
    TROUPE_TRY(model_->save_state(folder));
    if (settings_.loss.step_wide() != StepWide::kRunningMean) return {};
    return model_->write_once([&] { return save_rewards(folder, moments_); });
  }
  core::Result<void> load_state(const std::filesystem::path& folder) override {
    RunningMoments moments;
    if (settings_.loss.step_wide() == StepWide::kRunningMean) {
      TROUPE_TRY_SET(moments, load_rewards(folder));
    }
    TROUPE_TRY(model_->load_state(folder));
    moments_ = moments;
    return {};
  }

 private:
  using Rows = std::vector<data::SupervisedRow>;
  // A data row's log-probs under the frozen reference, computed once.
  struct Kept {
    double first = 0, second = 0;
  };
  using KeptRows = std::unordered_map<std::uint64_t, Kept>;  // by the row's id

  Result<SupervisedEvaluation> evaluate_choices(const model::PackedWeights& weights,
                                                std::span<const data::SupervisedRow> rows,
                                                const StepTotals& total) {
    const auto micro_batches = pack(rows, count_of(settings_.optim.ranks));
    std::vector<std::size_t> of_row;
    for (const data::SupervisedRow& row : rows)
      of_row.push_back((row.labels.size() + row.shares.size()) * total.choices.size());
    std::vector<std::size_t> counts;
    for (const auto& micro : micro_batches) {
      const auto own = picked(of_row, micro);
      counts.push_back(std::accumulate(own.begin(), own.end(), std::size_t{0}));
    }
    TROUPE_TRY_ASSIGN(logprobs,
                      share_parts<double>(
                          model_->ranks(), counts,
                          [&](std::size_t i, std::vector<double>& to) -> Result<void> {
                            TROUPE_TRY_ASSIGN(
                                own, runner_.choice_logprobs(
                                         weights, picked(rows, micro_batches[i]), total.choices));
                            to.insert(to.end(), own.begin(), own.end());
                            return {};
                          },
                          weights.gate() != nullptr ? model_->passes() : nullptr));
    RowFigures figures;
    choice_loss(settings_.loss, wanted_choices(rows, total.choices), total,
                tensor_of(in_row_order(logprobs, micro_batches, of_row)), figures);
    return evaluation_of(settings_.loss, figures);
  }

  Result<RowValues> score(const model::PackedWeights& weights,
                          std::span<const data::SupervisedRow> rows) {
    RowValues out;
    out.resize(*settings_.loss.method, rows.size());
    const std::vector<std::vector<double>*> columns = out.columns();
    // Scores do not depend on the plan, so ranks may have one that gives work to each.
    const auto micro_batches = pack(rows, count_of(settings_.optim.ranks));
    std::vector<std::size_t> counts;
    for (const auto& micro : micro_batches)
      counts.push_back(columns.size() * micro.size());
    TROUPE_TRY_ASSIGN(all, share_parts<double>(
                               model_->ranks(), counts,
                               [&](std::size_t i, std::vector<double>& to) -> Result<void> {
                                 TROUPE_TRY_ASSIGN(
                                     own, runner_.score(weights, picked(rows, micro_batches[i])));
                                 for (const auto* const column : own.columns())
                                   to.insert(to.end(), column->begin(), column->end());
                                 return {};
                               },
                               weights.gate() != nullptr ? model_->passes() : nullptr));
    auto next = all.begin();
    for (const auto& micro : micro_batches) {
      for (auto* const column : columns) {
        for (const std::size_t row : micro)
          (*column)[row] = *next++;
      }
    }
    return out;
  }

  Result<RowFacts> facts(std::span<const data::SupervisedRow> rows, KeptRows& kept) {
    RowFacts out = runner_.facts_of(rows);
    if (!settings_.loss.method->reference) return out;
    Rows fresh;
    for (const data::SupervisedRow& row : rows) {
      if (!kept.contains(row.id)) fresh.push_back(row);
    }
    if (!fresh.empty()) {
      TROUPE_TRY_ASSIGN(values, score(*reference_, fresh));
      for (std::size_t i = 0; i < fresh.size(); ++i)
        kept[fresh[i].id] = {values.first[i], values.second.empty() ? 0 : values.second[i]};
    }
    for (const data::SupervisedRow& row : rows) {
      const Kept& known = kept.at(row.id);
      out.reference_first.push_back(known.first);
      out.reference_second.push_back(known.second);
    }
    return out;
  }

  StepTotals totals(const RowFacts& facts, std::span<const data::SupervisedRow> rows) const {
    StepTotals out;
    if (settings_.loss.method->steps()) out.choices = choices_of(settings_.loss, rows);
    out.rows = static_cast<double>(rows.size());
    out.first_tokens = sum_of(facts.first_tokens);
    return out;
  }

  // The rows' values under the weights that a step starts from, without gradients; empty where the
  // loss reads none of them.
  Result<RowValues> start_values(std::span<const data::SupervisedRow> rows) {
    const StepWide reads = settings_.loss.step_wide();
    if (reads != StepWide::kSorted && reads != StepWide::kRunningMean) return RowValues();
    const auto weights = model_->pass_weights();
    return score(*weights, rows);
  }

  // What the loss reads of all rows of a step or an evaluation. `values`: theirs; `moments`: of the
  // run's rewards so far.
  Result<void> read_step(std::span<const data::SupervisedRow> rows,
                         const RowValues& values,
                         const RunningMoments& moments,
                         RowFacts& all,
                         StepTotals& total) {
    switch (settings_.loss.step_wide()) {
      case StepWide::kMismatchedKl: {
        TROUPE_TRY_SET(total.z, mismatched_kl(rows));
        break;
      }
      case StepWide::kRunningMean:
        total.z = moments.mean;
        break;
      case StepWide::kSorted:
        all.matched = matched_ratios(all, values.first, values.second);
        break;
      case StepWide::kNothing:
        break;
    }
    return {};
  }

  // KTO's z: the mean of sum(l - l_ref) over mismatched pairs, at least 0. A pair is a prompt with
  // the next row's answer, cut to what a micro-batch and the context hold. Without gradients.
  Result<double> mismatched_kl(std::span<const data::SupervisedRow> rows) {
    const std::int64_t longest = std::min(settings_.micro_tokens_max, model_->spec().context);
    Rows pairs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      data::SupervisedRow pair = rows[i];
      pair.answer = rows[(i + 1) % rows.size()].answer;
      // An answer's last token predicts nothing, so it takes no room.
      const std::int64_t room = longest - std::ssize(pair.prompt) + 1;
      if (std::ssize(pair.answer) > room) {
        pair.answer = pair.answer.first(static_cast<std::size_t>(std::max<std::int64_t>(room, 1)));
      }
      pairs.push_back(pair);
    }
    const auto weights = model_->pass_weights();
    TROUPE_TRY_ASSIGN(policy, score(*weights, pairs));
    TROUPE_TRY_ASSIGN(reference, score(*reference_, pairs));
    double sum = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i)
      sum += policy.first[i] - reference.first[i];
    const double mean = sum / static_cast<double>(pairs.size());
    return mean < 0 ? 0 : mean;  // a NaN stays one
  }

  // The rows of a micro-batch have the same teacher; those of a prompt share a micro-batch.
  std::vector<std::vector<std::size_t>> pack(std::span<const data::SupervisedRow> rows,
                                             std::int64_t lanes) const {
    std::map<std::uint32_t, std::vector<std::size_t>> by_teacher;
    for (std::size_t i = 0; i < rows.size(); ++i)
      by_teacher[rows[i].teacher].push_back(i);
    const std::int64_t most = settings_.micro_tokens_max;
    std::vector<std::vector<std::size_t>> all;
    for (const auto& [teacher, own] : by_teacher) {
      const auto units = units_of(*settings_.loss.method, rows, own, most, lanes);
      std::vector<std::int64_t> costs;
      for (const auto& unit : units)
        costs.push_back(cost_of(picked(rows, unit)));
      for (const auto& micro : pack_for_lanes(costs, most, lanes)) {
        all.emplace_back();
        for (const std::size_t unit : micro)
          all.back().insert(all.back().end(), units[unit].begin(), units[unit].end());
      }
    }
    return all;
  }

  // Number of tokens of the data rows that go through the model.
  std::int64_t cost_of(std::span<const data::SupervisedRow> rows) const {
    return rows_cost(*settings_.loss.method, rows);
  }

  const SupervisedSettings settings_;
  std::unique_ptr<TrainableModel> model_;
  RowRunner runner_;
  std::shared_ptr<const model::PackedWeights> reference_;  // null: the method has none
  KeptRows kept_, kept_held_out_;
  RunningMoments moments_;  // of g over all rows of the steps taken; empty unless the loss reads it
};

Result<void> check_teachers(const SupervisedSettings& settings, const model::ModelSpec& spec) {
  if (!settings.loss.method->teacher) return {};
  TROUPE_TRY(require(!settings.teachers.empty(), "teacher.model_name_or_path", "given"));
  for (const auto& teacher : settings.teachers) {
    TROUPE_TRY(require(teacher->spec().vocab == spec.vocab, "teacher.model_name_or_path",
                       "a model with the vocabulary of the trained one"));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SupervisedTrainer>> SupervisedTrainer::create(
    std::unique_ptr<model::ParamStore> master,
    std::shared_ptr<const model::PackedWeights> reference,
    const SupervisedSettings& settings,
    core::TeamRunner& team) {
  TROUPE_TRY(check_settings(settings));
  const bool scores = master->spec().head == model::HeadKind::kScore;
  TROUPE_CHECK(scores == (settings.loss.method->scores),
               "a reward model has a score head, others have none");
  TROUPE_TRY(check_teachers(settings, master->spec()));
  TROUPE_TRY_ASSIGN(
      model, TrainableModel::create(std::move(master), settings.optim, settings.total_steps, team));
  if (!settings.loss.method->reference) {
    reference.reset();
  } else if (!reference) {
    TROUPE_TRY(model->gather());
    auto panels =
        std::make_shared<model::PackedWeights>(model->spec(), settings.optim.panels, team.memory());
    team.run([&](core::Team member) {
      kernels::flush_denormals();
      panels->fill(member, model->master(), 0);
    });
    reference = std::move(panels);
  }
  std::unique_ptr<SupervisedTrainer> trainer =
      std::make_unique<SupervisedTrainerImpl>(std::move(model), std::move(reference), settings);
  return trainer;
}

}  // namespace troupe::learn
