#include "apps/session/supervised_inputs.hpp"

#include "apps/cli/end_tokens.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/step_marks.hpp"
#include "apps/session/roles/teachers.hpp"
#include "runtime/config/method.hpp"
#include "runtime/data/answer_end.hpp"
#include "runtime/learn/supervised/row_checks.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

namespace troupe::session {

core::Result<data::SupervisedColumns> supervised_columns(const config::TrainConfig& config,
                                                         const text::Tokenizer& tokenizer) {
  data::SupervisedColumns columns;
  columns.take(config.data);
  TROUPE_TRY_SET(columns.steps, step_marks(config, tokenizer));
  columns.kind = supervised_method(config).rows;
  columns.domains = domains_of(config);
  return columns;
}

namespace {

core::Result<std::shared_ptr<const data::SupervisedDataset>> load_rows(
    const config::TrainConfig& config,
    const model::ModelSpec& spec,
    const text::Tokenizer& tokenizer,
    const text::ChatTemplate* chat,
    bool training,
    std::vector<std::string>& notes) {
  data::SupervisedLimits limits;
  limits.take(config.data);
  if (!training) limits.max_samples = 0;
  TROUPE_TRY_SET(limits.context, taught_context(config, spec.context));
  limits.vocab = spec.vocab;
  limits.each_set = !config.data.probs.empty();
  TROUPE_TRY_ASSIGN(columns, supervised_columns(config, tokenizer));
  if (!training && columns.kind == data::RowKind::kPair)
    columns.category_key = config.eval.source_key;
  const std::string& files = training ? config.data.dataset : config.eval.dataset;
  TROUPE_TRY_ASSIGN(rows,
                    data::SupervisedDataset::load(files, training ? "data.dataset" : "eval.dataset",
                                                  columns, limits, tokenizer, chat));
  for (const std::string& note : rows.notes())
    notes.push_back(note);
  std::string note = std::string(training ? "training" : "held-out") +
                     " rows: " + std::to_string(rows.size()) + " with " +
                     std::to_string(rows.tokens()) + " tokens";
  if (rows.dropped() > 0) {
    note += "; " + std::to_string(rows.dropped()) + " longer than --data.max_len left out";
  }
  notes.push_back(std::move(note));
  return std::make_shared<const data::SupervisedDataset>(std::move(rows));
}

}  // namespace

core::Result<SupervisedInputs> load_supervised(const config::TrainConfig& config) {
  SupervisedInputs inputs;
  TROUPE_TRY_ASSIGN(folder, trained_folder(config));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  if (auto note = model::longrope_note(spec)) inputs.notes.push_back(std::move(*note));
  if (auto note = lanes_note(config)) inputs.notes.push_back(std::move(*note));
  if (!config.ref.model_name_or_path.empty()) {
    TROUPE_TRY_ASSIGN(reference, model::resolve_model(config.ref.model_name_or_path));
    TROUPE_TRY_ASSIGN(other, model::read_spec(reference));
    if (other.vocab != spec.vocab) {
      return core::fail(ErrorCode::kConfig,
                        "ref.model_name_or_path: a vocabulary of " + std::to_string(other.vocab) +
                            ", the trained model has " + std::to_string(spec.vocab),
                        "both need the same tokenizer");
    }
  }
  TROUPE_TRY(check_teachers(config));
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  TROUPE_TRY_ASSIGN(chat, text::load_template(folder, config.data.apply_chat_template));
  const text::ChatTemplate* chat_ptr = chat ? &*chat : nullptr;
  TROUPE_TRY_SET(inputs.train, load_rows(config, spec, tokenizer, chat_ptr, true, inputs.notes));
  if (!config.eval.dataset.empty()) {
    TROUPE_TRY_SET(inputs.evaluation,
                   load_rows(config, spec, tokenizer, chat_ptr, false, inputs.notes));
  }
  const learn::Method& method = supervised_method(config);
  const bool generates = !method.scores && !method.steps();
  if (generates && inputs.train->has_chats()) {
    const auto ends = cli::end_tokens(tokenizer.eos_ids(), spec);
    if (auto note = data::answer_end_note(tokenizer, *chat, ends))
      inputs.notes.push_back(std::move(*note));
  }
  std::vector<std::uint64_t> runs;
  if (const std::int64_t together = config.data.rows_together; together > 1)
    runs = inputs.train->prompt_runs(static_cast<std::uint64_t>(together));
  TROUPE_TRY_SET(inputs.order, data::BlendOrder::create(
                                   inputs.train->set_rows(), config.data.probs,
                                   seed_of(config), std::move(runs)));
  TROUPE_TRY_SET(inputs.steps, updates_of_run(config, inputs.train->size()));
  if (auto note = left_over_note(config, inputs.train->size()))
    inputs.notes.push_back(std::move(*note));
  const learn::SupervisedSettings settings = supervised_settings(config, inputs.steps);
  TROUPE_TRY(learn::check_settings(settings));
  TROUPE_TRY(learn::check_rows(*inputs.train, settings));
  if (inputs.evaluation) TROUPE_TRY(learn::check_rows(*inputs.evaluation, settings));
  return inputs;
}

}  // namespace troupe::session
