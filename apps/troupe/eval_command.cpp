// `troupe eval`: evaluates a model on held-out problems (pass@k, maj@k), a reward model on pairs
// (accuracy), or two models against each other (win rate). Prints a table or JSON. See
// docs/evaluation.md.
#include "apps/troupe/batch/baseline.hpp"
#include "apps/troupe/batch/batch_progress.hpp"
#include "apps/troupe/batch/batch_sampler.hpp"
#include "apps/troupe/batch/eval_flags.hpp"
#include "apps/troupe/batch/output.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/data/default_columns.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>

namespace troupe::app {
namespace {

struct EvalOptions : EvalFlags {
  std::string model, ks = "1", answer_pattern, against;
  double pass_score = 0.5;
};

// Parses --k, such as "1,4,8": sorted, without repeats, each from 1 to the samples of a problem.
Result<std::vector<std::int64_t>> ks_of(const EvalOptions& options) {
  std::vector<std::int64_t> ks;
  std::istringstream words(options.ks);
  for (std::string word; std::getline(words, word, ',');) {
    const std::int64_t k = core::number_of<std::int64_t>(word).value_or(0);
    if (k < 1 || k > options.samples) {
      return fail(ErrorCode::kConfig, "--k " + options.ks + ": '" + word +
                                          "' is not a whole number from 1 to --n (" +
                                          std::to_string(options.samples) + ")");
    }
    ks.push_back(k);
  }
  if (ks.empty()) return fail(ErrorCode::kConfig, "--k names no number, as in --k 1,4,8");
  std::sort(ks.begin(), ks.end());
  ks.erase(std::unique(ks.begin(), ks.end()), ks.end());
  return ks;
}

class Evaluating {
 public:
  Evaluating(const EvalOptions& options,
             cli::EngineHost& host,
             actors::data::DatasetPrompts& prompts)
      : options_(options), host_(host), prompts_(prompts) {}

  Result<std::vector<session::EvalProblem>> run(actors::reward::RewardSource& source) {
    TROUPE_TRY(sample());
    TROUPE_TRY(score(source, &session::EvalProblem::scores, [&](const std::string& problem) {
      return "problem " + problem + " of " + options_.prompts.data + " cannot be scored";
    }));
    if (!options_.pairs.model.empty()) TROUPE_TRY(rate());
    if (!options_.out.empty()) TROUPE_TRY(write());
    return std::move(problems_);
  }

  // The prompts of all problems, as a baseline names them.
  std::vector<std::string> prompts() const {
    std::vector<std::string> out;
    for (const actors::RewardGroup& group : groups_) {
      const Json columns = parse::written_json<Json>(group.columns);
      const std::string key = data::prompt_column(columns, options_.prompts.input_key);
      out.push_back(parse::written_text(columns.value(key, Json())));
    }
    return out;
  }

 private:
  Result<void> sample() {
    problems_.resize(prompts_.size());
    BatchProgress progress("sampled", "problems", 0, prompts_.size());
    std::uint64_t tokens = 0;
    BatchSampler sampler(host_.driver(), options_.sampling, options_.samples);
    BatchSampler::Hooks hooks;
    hooks.prompt = [this](std::size_t index) -> Result<std::vector<std::int32_t>> {
      TROUPE_TRY_ASSIGN(prompt, prompts_.at(index));
      return std::move(prompt.tokens);
    };
    hooks.done = [&](std::size_t index, const std::vector<engine::Sample>& samples) {
      for (const engine::Sample& sample : samples)
        tokens += sample.tokens.size();
      progress.at(index + 1, tokens);
      return take(index, samples);
    };
    return sampler.run(0, prompts_.size(), hooks);
  }

  Result<void> take(std::size_t index, const std::vector<engine::Sample>& samples) {
    TROUPE_TRY_ASSIGN(prompt, prompts_.at(index));
    session::EvalProblem& problem = problems_[index];
    problem.source = source_of(parse::written_json<Json>(prompt.columns), options_.source_key);
    actors::RewardGroup group{prompt.text, prompt.label, prompt.columns, prompt.messages};
    for (const engine::Sample& sample : samples) {
      TROUPE_TRY_ASSIGN(text, host_.tokenizer().decode(sample.tokens, true));
      const auto& keys = options_.reward.keys();
      const std::string& rule = options_.answer_pattern.empty() ? keys.rule : "";
      const std::string& pattern =
          options_.answer_pattern.empty() ? keys.rule_pattern : options_.answer_pattern;
      problem.answers.push_back(session::answer_of(rule, pattern, text));
      problem.cut.push_back(sample.finish == engine::FinishReason::kLength);
      finishes_.push_back(sample.finish);
      problem.lengths.push_back(static_cast<double>(sample.tokens.size()));
      group.samples.push_back({std::move(text)});
    }
    groups_.push_back(std::move(group));
    return {};
  }

  // Scores the same samples with --reward-model, too. These scores do not decide what passes.
  Result<void> rate() {
    TROUPE_TRY_ASSIGN(team, cli::make_team(options_.placement));
    TROUPE_TRY_ASSIGN(model, options_.prompts.model_source(options_.pairs.model, false, *team));
    return score(*model, &session::EvalProblem::rated, [&](const std::string& problem) {
      return "--reward-model " + options_.pairs.model + " cannot score problem " + problem;
    });
  }

  // Scores all samples with `source` into the member `place` of their problem. A sample without a
  // score is an error; `trouble` makes its text from the number of the problem.
  Result<void> score(actors::reward::RewardSource& source,
                     std::vector<double> session::EvalProblem::*place,
                     const std::function<std::string(const std::string&)>& trouble) {
    TROUPE_TRY_ASSIGN(scores, session::score_items(source, groups_, options_.reward.deadline()));
    const auto samples = static_cast<std::size_t>(options_.samples);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (!scores[i].value) {
        return fail(ErrorCode::kData,
                    trouble(std::to_string(i / samples + 1)) + ": " + scores[i].cause);
      }
      (problems_[i / samples].*place).push_back(*scores[i].value);
    }
    return {};
  }

  // Writes rows like those of `generate --data` and `score`.
  Result<void> write() const {
    std::string lines;
    const auto samples = static_cast<std::size_t>(options_.samples);
    for (std::size_t i = 0; i < finishes_.size(); ++i) {
      const actors::RewardGroup& group = groups_[i / samples];
      Json row = parse::written_json<Json>(group.columns);
      const session::EvalProblem& problem = problems_[i / samples];
      row["prompt_id"] = i / samples;
      row["sample"] = i % samples;
      row["response"] = group.samples[i % samples].response;
      row["finish_reason"] = engine::finish_name(finishes_[i]);
      row["answer_given"] = problem.answers[i % samples];
      row["reward"] = problem.scores[i % samples];
      if (!problem.rated.empty()) row["reward_model"] = problem.rated[i % samples];
      lines += json_line(row);
    }
    return store::replace_file(options_.out, lines);
  }

  const EvalOptions& options_;
  cli::EngineHost& host_;
  actors::data::DatasetPrompts& prompts_;
  std::vector<session::EvalProblem> problems_;
  std::vector<actors::RewardGroup> groups_;
  std::vector<engine::FinishReason> finishes_;  // of all samples, problem by problem
};

void print(const EvalOptions& options, const std::vector<session::EvalSet>& sets) {
  if (options.json) {
    Json line = {{"model", options.model}, {"data", options.prompts.data}, {"n", options.samples}};
    line["all"] = figures_json(sets.front(), "problems");
    for (std::size_t i = 1; i < sets.size(); ++i)
      line["sets"][sets[i].name] = figures_json(sets[i], "problems");
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  print_figures(sets, options.prompts.data,
                "problems x " + std::to_string(options.samples) + " samples");
}

Result<void> compare_sides(const EvalOptions& options) {
  if (!options.model.empty()) {
    return fail(ErrorCode::kConfig, "troupe eval: --compare names both models",
                "leave --model out");
  }
  return compare_models(options);
}

Result<void> check(const EvalOptions& options) {
  if (options.prompts.data.empty())
    return fail(ErrorCode::kConfig, "troupe eval: give --data, the held-out rows");
  if (options.model.empty() && !options.against.empty()) {
    return fail(ErrorCode::kConfig, "troupe eval: --against compares models that sample",
                "give --model");
  }
  if (options.model.empty() && (!options.pairs.model.empty() || options.reward.given())) {
    if (!options.pairs.model.empty() && options.reward.given()) {
      return fail(ErrorCode::kConfig,
                  "troupe eval: one reward is evaluated on pairs: --reward-model or one of --rule, "
                  "--python, --http and --judge",
                  "--model names a model to sample");
    }
    return {};
  }
  if (options.model.empty()) {
    return fail(ErrorCode::kConfig,
                "troupe eval: give --model, --compare, or a reward that is evaluated on pairs");
  }
  return options.reward.check_label(options.prompts.label_key);
}

// The reward, which is asked for its columns before the model is loaded.
Result<std::unique_ptr<actors::reward::RewardSource>> source_of(
    const EvalOptions& options, const data::DatasetColumns& columns) {
  TROUPE_TRY_ASSIGN(rows, data::load_prompts(options.prompts.data, columns));
  return options.reward.source(session::columns_of_rows(rows, "--data"));
}

}  // namespace

Result<void> run_eval(cli::Words words) {
  EvalOptions options;
  options.sampling.temperature = 0.6;
  std::vector<cli::Flag> flags = {
      {"--model", &options.model, "Hugging Face folder or OWNER/NAME"},
      {"--n", &options.samples, "samples of each problem", false, 1, 1024},
      {"--k", &options.ks, "pass@k and maj@k for these, as 1,4,8"},
      {"--pass-score", &options.pass_score, "a sample passes at this score", false, -1e9, 1e9},
      {"--answer-pattern", &options.answer_pattern,
       "for maj@k: group 1 of this expression is the answer, in place of what the rule compares"},
      {"--source-key", &options.source_key, "column that names sets of problems"},
      {"--out", &options.out, "also write samples (or pairs) and scores to this .jsonl file"},
      {.name = "--compare",
       .target = &options.sides,
       .help = "A B: win rate of one against the other; models, run folders or files of responses",
       .words = 2},
      {"--response-key", &options.response_key, "of --compare: column of a file's responses"},
      {"--against", &options.against,
       "samples of an earlier evaluation (its --out): the paired difference, with an interval"},
      {"--json", &options.json, "one JSON object"},
      {"--device", &options.placement.device, cli::kDeviceHelp},
      {"--threads", &options.placement.threads, "0 = all usable cores of the CPU", false, 0, 1024}};
  options.prompts.add_to(flags);
  options.reward.add_to(flags);
  options.pairs.add_to(flags);
  options.sampling.add_to(flags);
  options.engine.add_to(flags);
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags("troupe eval: evaluate a model or a reward model", flags, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (!options.sides.empty()) return compare_sides(options);
  TROUPE_TRY(check(options));
  if (options.model.empty()) return print_pair_accuracy(options);
  TROUPE_TRY_ASSIGN(ks, ks_of(options));
  std::optional<Baseline> baseline;
  if (!options.against.empty())
    TROUPE_TRY_SET(baseline, read_baseline(options.against, options.prompts.input_key));
  TROUPE_TRY_ASSIGN(dataset, options.prompts.options());
  TROUPE_TRY_ASSIGN(source, source_of(options, dataset.columns));
  TROUPE_TRY_ASSIGN(
      host, cli::EngineHost::load(options.model, options.placement, options.engine.limits()));
  TROUPE_TRY_ASSIGN(prompts,
                    actors::data::DatasetPrompts::load(dataset, host->tokenizer(), host->chat()));
  for (const std::string& note : prompts->notes())
    std::fprintf(stderr, "%s\n", note.c_str());
  Evaluating evaluating(options, *host, *prompts);
  TROUPE_TRY_ASSIGN(problems, evaluating.run(*source));
  TROUPE_TRY_ASSIGN(sets, session::eval_figures(problems, ks, options.pass_score));
  if (baseline) {
    TROUPE_TRY_ASSIGN(figures, differences(problems, evaluating.prompts(), *baseline));
    auto& all = sets.front().figures;
    all.insert(all.end(), figures.begin(), figures.end());
  }
  print(options, sets);
  return {};
}

}  // namespace troupe::app
