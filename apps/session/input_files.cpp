#include "apps/session/input_files.hpp"

#include "apps/session/roles/make_reward.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/run_inputs.hpp"
#include "apps/session/supervised_inputs.hpp"
#include "runtime/config/eval_sets.hpp"
#include "runtime/config/method.hpp"
#include "runtime/config/reward_list.hpp"
#include "runtime/config/table.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/data/foreign_file.hpp"
#include "runtime/data/row_figures.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/text/tokenizer.hpp"

#include <filesystem>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;

// --- what `troupe data check` warns of -----------------------------------------------------------

using Lines = std::vector<std::string>;

void warn(const std::string& key, const data::RowFigures& figures, Lines& lines) {
  for (const std::string& warning : figures.warnings())
    lines.push_back(key + ": warning: " + warning);
}

void warn_of_tools(const std::string& key, const std::string& warning, Lines& lines) {
  if (!warning.empty()) lines.push_back(key + ": warning: " + warning);
}

void warn_shared(const data::RowFigures& train, const data::RowFigures& held_out, Lines& lines) {
  const std::string warning = train.warning_of_shared(held_out);
  if (!warning.empty()) lines.push_back("eval.dataset: warning: " + warning);
}

Result<void> warn_of_rows(const config::TrainConfig& config,
                          const SupervisedInputs& inputs,
                          Lines& lines) {
  const auto figures = [&](const data::SupervisedDataset& rows) {
    data::RowFigures out(supervised_method(config).rows, 0);
    for (std::uint64_t i = 0; i < rows.size(); ++i)
      out.add(rows.row(i));
    return out;
  };
  const auto streamed = [&]() -> Result<data::RowFigures> {
    data::RowFigures out(supervised_method(config).rows, 0);
    const auto rows = inputs.training();
    for (std::uint64_t place = 0; place < rows->size(); ++place) {
      TROUPE_TRY_ASSIGN(row, rows->at(place));
      out.add(row);
    }
    return out;
  };
  TROUPE_TRY_ASSIGN(train, inputs.held ? Result(figures(*inputs.held)) : streamed());
  warn("data.dataset", train, lines);
  warn_of_tools("data.dataset", inputs.tools_warning, lines);
  if (inputs.evaluation) warn_shared(train, figures(*inputs.evaluation), lines);
  return {};
}

Result<void> warn_of_prompts(const config::TrainConfig& config, RunInputs& inputs, Lines& lines) {
  if (!config.data.probs.empty()) return {};  // a pass does not give each prompt once
  const auto figures = [](actors::data::DatasetPrompts& prompts) -> Result<data::RowFigures> {
    data::RowFigures out(std::nullopt, 0);
    for (std::uint64_t i = 0; i < prompts.size(); ++i) {
      TROUPE_TRY_ASSIGN(prompt, prompts.at(i));
      data::SupervisedRow row;
      row.prompt = prompt.tokens;
      out.add(row);
    }
    return out;
  };
  TROUPE_TRY_ASSIGN(train, figures(*inputs.prompts));
  warn("data.prompt_dataset", train, lines);
  for (const HeldOutInputs& set : inputs.evaluation) {
    TROUPE_TRY_ASSIGN(held_out, figures(*set.prompts));
    warn_shared(train, held_out, lines);
  }
  return {};
}

class Look {
 public:
  explicit Look(const config::TrainConfig& config) : config_(config) {}

  Result<std::vector<std::string>> all() {
    models();
    files(ppo() ? "data.prompt_dataset" : "data.dataset");
    if (ppo()) files("data.pretrain_dataset");
    files("eval.dataset");
    if (ppo()) sets();
    if (ppo()) rewards();
    TROUPE_TRY(wrong_.result());
    TROUPE_TRY(rows());
    return std::move(seen_);
  }

 private:
  bool ppo() const { return config_.method == config::kPpo; }

  void models() {
    model("actor.model_name_or_path", config_, true);
    model("ref.model_name_or_path", config_, true);
    if (!ppo()) return;
    model("critic.model_name_or_path", config_, false);
    for (const config::TrainConfig& one : with_rewards()) {
      for (const std::string& folder : one.reward.model_name_or_path)
        model("reward.model_name_or_path", folder, true);
      model("reward.process.model_name_or_path", one, true);
    }
  }

  void model(const std::string& key, const config::TrainConfig& of, bool reads_text) {
    model(key, config::value_at<config::Text>(of, key), reads_text);
  }
  // `reads_text`: the model needs a tokenizer of its own.
  void model(const std::string& key, const std::string& name, bool reads_text) {
    if (name.empty()) return;
    const auto folder = model::resolve_model(name);
    if (!folder) return wrong_.add(folder.error().within(key));
    core::ErrorList wrong;
    wrong.take(model::read_spec(*folder));
    wrong.take(model::weight_files(*folder));
    if (reads_text) wrong.take(text::Tokenizer::load(*folder));
    if (wrong.empty()) {
      seen_.push_back(key + ": " + folder->string() + " (configuration, headers of the weights" +
                      (reads_text ? ", tokenizer)" : ")"));
      return;
    }
    wrong_.add(wrong.error().within(key));
  }

  bool is_there(const std::string& key, const fs::path& file) {
    std::error_code error;
    if (fs::is_regular_file(file, error)) return true;
    wrong_.add(ErrorCode::kNotFound, key + ": there is no file " + file.string(),
               "give the path of one");
    return false;
  }

  void files(const std::string& key) { files(key, config::value_at<config::Text>(config_, key)); }
  // `names`: as data/table_list.hpp has them.
  void files(const std::string& key, const std::string& names) {
    const auto all = data::files_of_sets(names);
    if (!all) return wrong_.add(all.error().within(key));
    for (const std::string& name : *all) {
      const auto readable = data::check_rows_file(name, key);
      if (!readable) wrong_.add(readable.error().within(key));
    }
  }

  // The configurations that name rewards: the run's, and one for each item of reward.list.
  std::vector<config::TrainConfig> with_rewards() const {
    std::vector<config::TrainConfig> all = {config_};
    if (auto items = config::listed_rewards(config_)) {
      for (config::ListedReward& item : *items)
        all.push_back(std::move(item.config));
    }
    return all;
  }

  // Loads the function as a run does, in a worker of its own; it is not called.
  void python_reward(const std::string& key, const config::TrainConfig& one) {
    const std::string& file = one.reward.python;
    if (file.empty() || !is_there(key, file)) return;
    const auto loaded = make_reward(one);
    if (!loaded) return wrong_.add(loaded.error().within(key));
    seen_.push_back(key + ": " + file + " loads; its function was not called");
  }

  void rewards() {
    for (const config::TrainConfig& one : with_rewards()) {
      python_reward("reward.python", one);
      for (const std::string& url : one.reward.http)
        seen_.push_back("reward.http: " + url + " was not asked");
      for (const std::string& url : one.reward.judge)
        seen_.push_back("reward.judge: " + url + " was not asked");
    }
    const std::string& advantage = config_.algo.advantage_file;
    if (!advantage.empty() && is_there("algo.advantage_file", advantage)) {
      seen_.push_back("algo.advantage_file: " + advantage + " is there; it was not run");
    }
  }

  // The files of the named sets.
  void sets() {
    const auto sets = config::eval_sets(config_);
    if (!sets) return wrong_.add(sets.error().within("eval.sets"));
    for (const config::HeldOutSet& set : *sets) {
      if (set.name.empty()) continue;
      const std::string key = "eval.sets: " + set.name;
      files(key, set.config.eval.dataset);
      if (!set.own_rewards) continue;
      python_reward(key, set.config);
      if (const std::string& file = set.config.reward.judge_rubric; !file.empty())
        is_there(key, file);
    }
  }

  // Reads the rows as the run would.
  Result<void> rows() {
    if (ppo()) {
      TROUPE_TRY_ASSIGN(inputs, load_inputs(config_, false));
      rows_seen("data.prompt_dataset", inputs.prompts->size());
      warn_of_tools("data.prompt_dataset", inputs.prompts->tools_warning(), seen_);
      TROUPE_TRY(warn_of_prompts(config_, inputs, seen_));
      for (const HeldOutInputs& set : inputs.evaluation) {
        rows_seen(set.name.empty() ? "eval.dataset" : "eval.sets: " + set.name,
                  set.prompts->size());
      }
      if (!config_.data.pretrain_dataset.empty()) {
        seen_.push_back("data.pretrain_dataset: is there; its rows were not read");
      }
    } else {
      TROUPE_TRY_ASSIGN(inputs, load_supervised(config_));
      rows_seen("data.dataset", inputs.rows);
      if (inputs.dropped > 0) {
        seen_.back() += "; " + std::to_string(inputs.dropped) +
                        " others are longer than data.max_len " +
                        std::to_string(config_.data.max_len) + " and are left out";
      }
      if (inputs.evaluation) rows_seen("eval.dataset", inputs.evaluation->size());
      TROUPE_TRY(warn_of_rows(config_, inputs, seen_));
    }
    return {};
  }

  void rows_seen(const std::string& key, std::uint64_t rows) {
    seen_.push_back(key + ": " + std::to_string(rows) + " rows");
  }

  const config::TrainConfig& config_;
  core::ErrorList wrong_;
  std::vector<std::string> seen_;
};

}  // namespace

Result<std::vector<std::string>> look_at_input_files(const config::TrainConfig& config) {
  return Look(config).all();
}

}  // namespace troupe::session
