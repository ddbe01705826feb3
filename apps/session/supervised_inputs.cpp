#include "apps/session/supervised_inputs.hpp"

#include "apps/cli/end_tokens.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/step_marks.hpp"
#include "apps/session/roles/teachers.hpp"
#include "runtime/config/method.hpp"
#include "runtime/data/answer_end.hpp"
#include "runtime/data/streamed_dataset.hpp"
#include "runtime/learn/supervised/row_checks.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <optional>

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

// Loads the rows of a run: those that are held, and those that are streamed.
class RowsLoader {
 public:
  RowsLoader(const config::TrainConfig& config,
             const model::ModelSpec& spec,
             const text::Tokenizer& tokenizer,
             const std::optional<text::ChatTemplate>& chat,
             SupervisedInputs& inputs)
      : config_(config), spec_(spec), tokenizer_(tokenizer), chat_(chat), inputs_(inputs) {}

  // Whether the template rendered a row.
  core::Result<bool> training() {
    return config_.data.shuffle_buffer > 0 ? streamed_training() : held_training();
  }

  core::Result<void> evaluation() {
    TROUPE_TRY_SET(inputs_.evaluation, held(false));
    return learn::check_rows(*inputs_.evaluation, settings());
  }

 private:
  std::uint64_t seed() const { return seed_of(config_); }
  learn::SupervisedSettings settings() const { return supervised_settings(config_, 1); }

  core::Result<data::SupervisedLimits> limits(bool training) const {
    data::SupervisedLimits limits;
    limits.take(config_.data);
    if (!training) limits.max_samples = 0;
    TROUPE_TRY_SET(limits.context, taught_context(config_, spec_.context));
    limits.vocab = spec_.vocab;
    limits.each_set = !config_.data.probs.empty();
    return limits;
  }

  // Tells what was read.
  void note(const char* what, const auto& rows) {
    for (const std::string& note : rows.notes())
      inputs_.notes.push_back(note);
    std::string note =
        what + std::to_string(rows.size()) + " with " + std::to_string(rows.tokens()) + " tokens";
    if (rows.dropped() > 0) {
      note += "; " + std::to_string(rows.dropped()) + " longer than --data.max_len left out";
    }
    inputs_.notes.push_back(std::move(note));
  }

  core::Result<std::shared_ptr<const data::SupervisedDataset>> held(bool training) {
    TROUPE_TRY_ASSIGN(bounds, limits(training));
    TROUPE_TRY_ASSIGN(columns, supervised_columns(config_, tokenizer_));
    if (!training && columns.kind == data::RowKind::kPair)
      columns.category_key = config_.eval.source_key;
    TROUPE_TRY_ASSIGN(
        rows, data::SupervisedDataset::load(training ? config_.data.dataset : config_.eval.dataset,
                                            training ? "data.dataset" : "eval.dataset", columns,
                                            bounds, tokenizer_, chat_ ? &*chat_ : nullptr));
    note(training ? "training rows: " : "held-out rows: ", rows);
    return std::make_shared<const data::SupervisedDataset>(std::move(rows));
  }

  core::Result<bool> held_training() {
    TROUPE_TRY_SET(inputs_.held, held(true));
    const data::SupervisedDataset& rows = *inputs_.held;
    std::vector<std::uint64_t> runs;
    if (const std::int64_t together = config_.data.rows_together; together > 1)
      runs = rows.prompt_runs(static_cast<std::uint64_t>(together));
    TROUPE_TRY_ASSIGN(order, data::BlendOrder::create(rows.set_rows(), config_.data.probs, seed(),
                                                      std::move(runs)));
    TROUPE_TRY(learn::check_rows(rows, settings()));
    inputs_.rows = rows.size();
    inputs_.dropped = rows.dropped();
    inputs_.tools_warning = rows.tools_warning();
    inputs_.training = data::held_rows(inputs_.held, std::move(order));
    return rows.has_chats();
  }

  core::Result<bool> streamed_training() {
    TROUPE_TRY_ASSIGN(bounds, limits(true));
    TROUPE_TRY_ASSIGN(columns, supervised_columns(config_, tokenizer_));
    TROUPE_TRY_ASSIGN(
        rows, data::StreamedDataset::survey({.files = config_.data.dataset,
                                             .key = "data.dataset",
                                             .columns = std::move(columns),
                                             .limits = bounds,
                                             .tokenizer = tokenizer_,
                                             .chat = chat_},
                                            [of = settings()](const data::SupervisedRow& row) {
                                              return learn::check_row(row, of);
                                            }));
    note("training rows, streamed: ", *rows);
    inputs_.rows = rows->size();
    inputs_.dropped = rows->dropped();
    inputs_.tools_warning = rows->tools_warning();
    const auto buffer = static_cast<std::uint64_t>(config_.data.shuffle_buffer);
    inputs_.training = [rows, buffer, seed = seed()] { return rows->reader(buffer, seed); };
    return rows->has_chats();
  }

  const config::TrainConfig& config_;
  const model::ModelSpec& spec_;
  const text::Tokenizer& tokenizer_;
  const std::optional<text::ChatTemplate>& chat_;
  SupervisedInputs& inputs_;
};

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
  const learn::Method& method = supervised_method(config);
  TROUPE_TRY(learn::check_settings(supervised_settings(config, 1)));
  RowsLoader loader(config, spec, tokenizer, chat, inputs);
  TROUPE_TRY_SET(inputs.has_chats, loader.training());
  if (!config.eval.dataset.empty()) TROUPE_TRY(loader.evaluation());
  const bool generates = !method.scores && !method.steps();
  if (generates && inputs.has_chats) {
    const auto ends = cli::end_tokens(tokenizer.eos_ids(), spec);
    if (auto note = data::answer_end_note(tokenizer, *chat, ends))
      inputs.notes.push_back(std::move(*note));
  }
  TROUPE_TRY_SET(inputs.steps, updates_of_run(config, inputs.rows));
  if (auto note = left_over_note(config, inputs.rows)) inputs.notes.push_back(std::move(*note));
  return inputs;
}

}  // namespace troupe::session
