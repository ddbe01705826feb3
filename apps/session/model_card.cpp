#include "apps/session/model_card.hpp"

#include "apps/cli/build_facts.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/method.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/data/table_reader.hpp"
#include "runtime/names/hub_name.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <string_view>
#include <vector>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;
using names::Kind;

constexpr const char* kSettings[] = {"algo.advantage.estimator",
                                     "algo.objective",
                                     "dpo.loss",
                                     "rollout.batch_size",
                                     "train.batch_size",
                                     "rollout.n_samples_per_prompt",
                                     "rollout.max_new_tokens",
                                     "data.max_len",
                                     "train.max_epochs",
                                     "actor.adam.lr",
                                     "actor.lora.rank",
                                     "train.seed"};

// Training figures that say something of the model; those of evaluations all do.
constexpr std::string_view kScores[] = {"reward/mean", "rewards/accuracies", "policy/loss",
                                        "kl/ref"};

bool is_score(std::string_view name) {
  if (name.starts_with("eval/")) return true;
  for (const std::string_view score : kScores)
    if (name == score) return true;
  return false;
}

std::string quoted_yaml(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// A cell of a table: no bar and no line break of others.
std::string cell(std::string text) {
  for (char& c : text)
    if (c == '|' || c == '\n' || c == '\r' || c == '`') c = ' ';
  return text;
}

// A name of a hub with its commit, or the last part of a path.
std::string shown(const std::string& text, Kind kind) {
  if (names::hub_name(text, kind) && !fs::exists(text)) return cell(text);
  const fs::path path = fs::path(text).lexically_normal();
  return cell((path.has_filename() ? path : path.parent_path()).filename().string());
}

std::string data_files(const config::TrainConfig& config) {
  return config.method == config::kPpo ? config.data.prompt_dataset : config.data.dataset;
}

std::string front_matter(const config::TrainConfig& config,
                         const std::string& method,
                         bool adapter) {
  std::string text =
      std::string("---\nlibrary_name: ") + (adapter ? "peft" : "transformers") + "\n";
  const auto base = names::hub_name(config.actor.model_name_or_path, Kind::kModel);
  if (base && !fs::exists(config.actor.model_name_or_path)) {
    text += "base_model: " + quoted_yaml(base->repository) + "\n";
    text += std::string("base_model_relation: ") + (adapter ? "adapter" : "finetune") + "\n";
  }
  std::string sets;
  for (const std::string& one : data::split_files(data_files(config))) {
    const auto name = names::hub_name(one, Kind::kDataset);
    if (name && !fs::exists(one)) sets += "- " + quoted_yaml(name->repository) + "\n";
  }
  if (!sets.empty()) text += "datasets:\n" + sets;
  return text + "tags:\n- troupe\n- " + method + "\n---\n";
}

}  // namespace

ModelCard::ModelCard(const config::TrainConfig& config) : config_(config) {}

void ModelCard::read(const fs::path& metrics_file) {
  std::ifstream in(metrics_file);
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("step") || !row["step"].is_number_unsigned()) continue;
    observe::MetricRow read{row["step"].get<std::uint64_t>(), 0, {}};
    for (const auto& [name, value] : row.items())
      if (value.is_number() && is_score(name)) read.values.emplace_back(name, value.get<double>());
    offer(read);
  }
}

void ModelCard::offer(const observe::MetricRow& row) {
  for (const auto& [name, value] : row.values)
    if (is_score(name) && std::isfinite(value)) figures_[name] = {row.step, value};
}

std::string ModelCard::text(std::uint64_t done, bool adapter) const {
  const std::string method = config::method_names(config_.method);
  const std::string base = shown(config_.actor.model_name_or_path, Kind::kModel);
  std::string text = front_matter(config_, method, adapter);
  text += "# " + base + ", trained by " + method + "\n\n";
  text += std::string(adapter ? "LoRA adapters for " : "A model made from ") + base + ", after " +
          std::to_string(done) + " updates of `troupe train " + method + "` (Troupe " +
          cli::build_version() + ").\n\n| setting | value |\n|---|---|\n";
  text += "| base model | " + base + " |\n";
  std::vector<std::string> sets;
  for (const std::string& one : data::split_files(data_files(config_)))
    sets.push_back(shown(one, Kind::kDataset));
  text += "| data | " + core::joined(sets) + " |\n| method | " + method + " |\n";
  for (const char* key : kSettings) {
    const config::Row* row = run_table().find(key);
    if (row == nullptr || !row->is_read_by(config_.method)) continue;
    text += std::string("| `") + key + "` | " + cell(row->yaml(config_)) + " |\n";
  }
  if (!figures_.empty()) text += "\n| score | value | after update |\n|---|---|---|\n";
  for (const auto& [name, figure] : figures_) {
    text += "| `" + cell(name) + "` | " + core::printed("%.4g", figure.value) + " | " +
            std::to_string(figure.step) + " |\n";
  }
  return text + "\nThe licence of the base model and of the data apply.\n";
}

core::Result<void> write_cards(const fs::path& checkpoint,
                               const std::string& of_model,
                               const std::string& of_adapter) {
  std::error_code error;
  for (fs::directory_iterator it(checkpoint, error), end; !error && it != end;
       it.increment(error)) {
    const fs::path& folder = it->path();
    const bool adapter = fs::exists(folder / "adapter_config.json");
    if (!adapter && !fs::exists(folder / "config.json")) continue;
    TROUPE_TRY(store::write_file(folder / "README.md", adapter ? of_adapter : of_model));
  }
  return {};
}

}  // namespace troupe::session
