// `troupe score`: scores every response in a file, and writes all rows, the best row of each
// prompt, pairs, or rows for conditional training. Resumable. See docs/batch.md.
#include "actors/data/dataset_prompts.hpp"
#include "apps/cli/part_file.hpp"
#include "apps/cli/placement.hpp"
#include "apps/session/reward_flags.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/troupe/batch/batch_progress.hpp"
#include "apps/troupe/batch/output.hpp"
#include "apps/troupe/batch/prompt_flags.hpp"
#include "apps/troupe/batch/selection.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/data/default_columns.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/model/params.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <utility>

namespace troupe::app {
namespace {

struct ScoreOptions {
  std::string model, out, csft;
  SelectionKeys keys;
  cli::Placement placement;
  bool best = false, pairs = false, normalise = false, stored = false, overwrite = false;
  bool drop_empty = false;
  std::int64_t pairs_of_prompt = 1;
  PromptFlags data;
  session::RewardFlags reward;

  std::string steps_key() const { return keys.reward + "_steps"; }

  // Without a scorer, rows keep the scores that they have.
  bool scores() const { return !model.empty() || reward.has_process() || reward.given(); }
};

Result<void> check(const ScoreOptions& options) {
  if (options.data.data.empty() || options.out.empty())
    return fail(ErrorCode::kConfig, "troupe score: give --data and --out");
  if (options.best + options.pairs + !options.csft.empty() > 1) {
    return fail(ErrorCode::kConfig,
                "troupe score: give at most one of --best-of-n, --pairs and --csft");
  }
  if (options.pairs_of_prompt > 1 && !options.pairs)
    return fail(ErrorCode::kConfig, "troupe score: --pairs-per-prompt goes with --pairs");
  if (options.normalise && options.csft.empty())
    return fail(ErrorCode::kConfig, "troupe score: --normalize-reward goes with --csft");
  if (!options.model.empty() + options.reward.has_process() + options.reward.given() > 1) {
    return fail(ErrorCode::kConfig,
                "troupe score: give one of --model (a reward model), --process-model, --rule, "
                "--python, --http and --judge");
  }
  TROUPE_TRY(options.reward.check_process(false));
  if (options.stored && options.model.empty())
    return fail(ErrorCode::kConfig, "troupe score: --stored goes with --model");
  if (!options.scores() && !options.best && !options.pairs && options.csft.empty()) {
    return fail(ErrorCode::kConfig, "troupe score: give --model or one of --rule, --python, --http",
                "without them rows are selected by the scores that they have: --best-of-n, --pairs "
                "or --csft");
  }
  return options.reward.check_label(options.data.label_key);
}

class Scoring {
 public:
  explicit Scoring(ScoreOptions options) : options_(std::move(options)) {}

  Result<void> run() {
    TROUPE_TRY_ASSIGN(prompts, options_.data.options());
    TROUPE_TRY_ASSIGN(identity, cli::files_identity(options_.data.data));
    TROUPE_TRY_ASSIGN(settings, settings_of(identity));
    TROUPE_TRY_SET(rows_, data::load_prompts(options_.data.data, prompts.columns));
    find_columns();
    TROUPE_TRY(check_rows());
    if (options_.scores()) TROUPE_TRY_SET(source_, make_source());
    TROUPE_TRY_ASSIGN(
        part, cli::PartFile::open(options_.out, settings, session::kScoreRows, options_.overwrite));
    TROUPE_TRY(score_rows(part));
    return finish(part);
  }

 private:
  Result<cli::PartSettings> settings_of(const std::string& identity) {
    cli::PartSettings settings = {{"--data", identity},
                                  {"--response-key", options_.keys.response},
                                  {"--reward-key", options_.keys.reward},
                                  {"--stored", options_.stored ? "true" : "false"}};
    if (!options_.model.empty()) {
      TROUPE_TRY_ASSIGN(folder, model::resolve_model(options_.model));
      settings.emplace_back("--model", cli::model_identity(folder));
    }
    if (options_.reward.has_process()) {
      const auto& process_keys = options_.reward.keys().process;
      TROUPE_TRY_ASSIGN(folder, model::resolve_model(process_keys.model_name_or_path));
      settings.emplace_back("--process-model", cli::model_identity(folder));
      const cli::PartSettings process = options_.reward.process_settings();
      settings.insert(settings.end(), process.begin(), process.end());
    }
    const cli::PartSettings data = options_.data.settings();
    TROUPE_TRY_ASSIGN(reward, options_.reward.settings());
    settings.insert(settings.end(), data.begin(), data.end());
    settings.insert(settings.end(), reward.begin(), reward.end());
    return settings;
  }

  // The first row says which of the default columns the file has.
  void find_columns() {
    const Json first = Json::parse(rows_.front().columns_json);
    options_.keys.input = data::prompt_column(first, options_.keys.input);
    options_.keys.response = data::answer_column(first, options_.keys.response, false);
  }

  Result<void> check_rows() const {
    for (const data::PromptRow& row : rows_) {
      const Json columns = parse::written_json<Json>(row.columns_json);
      const auto response = columns.find(options_.keys.response);
      if (response == columns.end() || !response->is_string()) {
        return fail(ErrorCode::kData,
                    row.where + ": no text in column '" + options_.keys.response + "'",
                    "set --response-key");
      }
      if (!options_.scores()) continue;
      for (const std::string& key : {options_.keys.reward, options_.steps_key()}) {
        if (!columns.contains(key)) continue;
        return fail(ErrorCode::kConfig, row.where + " has a column '" + key + "' already",
                    "name another with --reward-key");
      }
      const bool seen = !row.messages.empty() && !columns.contains("rendered_prompt");
      const auto& keys = options_.reward.keys();
      if (seen && (!keys.python.empty() || !keys.http.empty())) {
        return fail(ErrorCode::kData, row.where +
                                          ": a chat without the text that the model saw (column "
                                          "rendered_prompt, which generate --data writes)");
      }
    }
    return {};
  }

  Result<std::unique_ptr<actors::reward::RewardSource>> make_source() {
    if (options_.model.empty() && !options_.reward.has_process())
      return options_.reward.source(session::columns_of_rows(rows_, "--data"));
    TROUPE_TRY_SET(team_, cli::make_team(options_.placement));
    if (options_.reward.has_process()) return process_source();
    return options_.data.model_source(options_.model, options_.stored, *team_);
  }

  Result<std::unique_ptr<actors::reward::RewardSource>> process_source() const {
    TROUPE_TRY_ASSIGN(prompts, options_.data.options());
    TROUPE_TRY_ASSIGN(own, session::process_options(options_.reward.process_config("min")));
    own.columns = prompts.columns;
    own.gives_steps = true;
    return actors::reward::make_process_reward(std::move(own), *team_);
  }

  actors::RewardGroup group_of(const data::PromptRow& row) const {
    const Json columns = parse::written_json<Json>(row.columns_json);
    const auto rendered = columns.find("rendered_prompt");
    const bool seen = rendered != columns.end() && rendered->is_string();
    actors::RewardGroup group{seen ? rendered->get<std::string>() : row.prompt, row.label,
                              row.columns_json};
    if (options_.reward.has_judge()) group.messages = actors::data::chat_json(row);
    group.samples.push_back({columns[options_.keys.response].get<std::string>()});
    return group;
  }

  Result<void> score_rows(cli::PartFile& part) {
    std::size_t next = std::min<std::size_t>(part.bundles() * session::kScoreRows, rows_.size());
    BatchProgress progress("scored", "rows", next, rows_.size());
    while (next < rows_.size()) {
      const std::size_t end = std::min(next + session::kScoreRows, rows_.size());
      if (!source_) {
        std::string same;
        for (std::size_t i = next; i < end; ++i)
          same += json_line(parse::written_json<Json>(rows_[i].columns_json));
        TROUPE_TRY(part.append(same, 1));
        next = end;
        continue;
      }
      std::vector<actors::RewardGroup> groups;
      for (std::size_t i = next; i < end; ++i)
        groups.push_back(group_of(rows_[i]));
      auto scores = session::score_items(*source_, groups, options_.reward.deadline());
      if (!scores) {
        core::Error error = scores.error();
        error.message = "after " + std::to_string(next) + " of " + std::to_string(rows_.size()) +
                        " rows: " + error.message + "; the same command continues from there";
        return fail(std::move(error));
      }
      std::string lines;
      for (std::size_t i = next; i < end; ++i)
        lines += scored_line(rows_[i], (*scores)[i - next]);
      TROUPE_TRY(part.append(lines, 1));
      next = end;
      progress.at(next, 0);
    }
    return {};
  }

  std::string scored_line(const data::PromptRow& row,
                          const actors::reward::RewardScore& score) const {
    Json columns = parse::written_json<Json>(row.columns_json);
    columns[options_.keys.reward] = score.value ? Json(*score.value) : Json(nullptr);
    if (!score.value) columns["reward_error"] = score.cause;
    for (const actors::StepScore& step : score.steps)
      columns[options_.steps_key()].push_back(step.score);
    return json_line(columns);
  }

  Result<void> finish(cli::PartFile& part) {
    TROUPE_TRY_ASSIGN(lines, part.content());
    if (options_.scores()) TROUPE_TRY(say_scores(lines));
    if (options_.drop_empty) lines = with_response(lines, options_.keys);
    if (!options_.best && !options_.pairs && options_.csft.empty())
      return options_.drop_empty ? part.finish(lines) : part.finish();
    auto selected = options_.best ? best_of_n(lines, options_.keys)
                    : options_.pairs
                        ? best_against_worst(lines, options_.keys,
                                             static_cast<std::uint64_t>(options_.pairs_of_prompt))
                        : conditional_rows(lines, options_.keys, options_.csft, options_.normalise);
    if (!selected) return selected.failure();
    TROUPE_TRY(part.finish(selected->lines));
    std::printf("%s: %lu rows of %lu prompts", options_.out.c_str(), selected->rows,
                selected->prompts);
    if (options_.pairs) {
      std::printf("; %lu prompts without a pair (equal scores or texts)", selected->equal);
    }
    std::printf("\n");
    return {};
  }

  Result<void> say_scores(const std::string& lines) const {
    std::uint64_t scored = 0, missing = 0;
    double sum = 0;
    std::string cause;
    std::string_view rest = lines;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size());
      const Json row = parse::written_json<Json>(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (row.is_object() && row[options_.keys.reward].is_number()) {
        sum += row[options_.keys.reward].get<double>();
        ++scored;
      } else {
        if (missing++ == 0 && row.is_object()) cause = row.value("reward_error", "");
      }
    }
    if (scored == 0) return fail(ErrorCode::kData, "no row could be scored: " + cause);
    std::printf("%lu rows scored, mean %.4f", scored, sum / static_cast<double>(scored));
    if (missing > 0) {
      std::printf("; %lu without a score, the first because %s", missing, cause.c_str());
    }
    std::printf("\n");
    return {};
  }

  ScoreOptions options_;
  std::unique_ptr<core::TeamRunner> team_;  // of a reward model
  std::vector<data::PromptRow> rows_;
  std::unique_ptr<actors::reward::RewardSource> source_;
};

}  // namespace

Result<void> run_score(cli::Words words) {
  ScoreOptions options;
  std::vector<cli::Flag> flags = {
      {"--model", &options.model, "reward model: a folder with a score head"},
      {"--out", &options.out, "the .jsonl file to write"},
      {"--response-key", &options.keys.response, "column of the response"},
      {"--reward-key", &options.keys.reward, "column to write the score to"},
      {"--best-of-n", &options.best, "keep the best row of each prompt"},
      {"--pairs", &options.pairs, "pair the best with the worst of each prompt"},
      {"--drop-empty", &options.drop_empty, "leave out rows whose response is empty"},
      {"--pairs-per-prompt", &options.pairs_of_prompt,
       "with --pairs: pair the best text with so many worse ones", false, 1, 1024},
      {"--csft", &options.csft,
       "write scores into the prompt, as '<rm_score>: {:.2f}' or '{COLUMN:.1f}'"},
      {"--normalize-reward", &options.normalise, "with --csft: standardise the scores"},
      {"--stored", &options.stored, "standardise scores by the reward model's stored figures"},
      {"--overwrite", &options.overwrite, "begin anew, whatever --out holds"},
      {"--device", &options.placement.device, cli::kDeviceHelp},
      {"--threads", &options.placement.threads, "0 = all usable cores of the CPU", false, 0, 1024}};
  options.data.add_to(flags);
  options.reward.add_to(flags);
  options.reward.add_process_to(flags,
                                "of --process-model: the score of a response from those of its "
                                "steps: min (the default), last, mean or product");
  TROUPE_TRY_ASSIGN(outcome, cli::parse_flags("troupe score: score responses", flags, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY(check(options));
  options.keys.input = options.data.input_key;
  return Scoring(options).run();
}

}  // namespace troupe::app
