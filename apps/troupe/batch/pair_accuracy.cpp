// `troupe eval` of pairs of answers.
#include "actors/data/dataset_prompts.hpp"
#include "apps/troupe/batch/eval_flags.hpp"
#include "apps/troupe/batch/output.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/learn/evaluation.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>
#include <utility>

namespace troupe::app {
namespace {

// Adds one row as a group of two samples: its chosen answer, then its rejected one.
Result<void> add_pair(const data::PromptRow& row,
                      const PairFlags& pairs,
                      std::vector<actors::RewardGroup>& groups) {
  const Json columns = parse::written_json<Json>(row.columns_json);
  actors::RewardGroup group{row.prompt, row.label, row.columns_json, actors::data::chat_json(row)};
  for (const std::string& key : {pairs.chosen, pairs.rejected}) {
    const auto answer = columns.find(key);
    if (answer == columns.end() || !answer->is_string()) {
      return fail(ErrorCode::kData, row.where + ": no text in column '" + key + "'",
                  "set --chosen-key and --rejected-key");
    }
    group.samples.push_back({answer->get<std::string>()});
  }
  groups.push_back(std::move(group));
  return {};
}

// The model's scores of one pair.
struct Judged {
  double chosen = 0, rejected = 0;  // scores
  std::string source;

  double margin() const { return chosen - rejected; }
  double right() const { return margin() > 0 ? 1 : margin() < 0 ? 0 : 0.5; }
};

// Accuracy and margin of all pairs, then of the pairs of each source, in order of name.
Result<std::vector<session::EvalSet>> sets_of(const std::vector<Judged>& judged) {
  std::map<std::string, std::vector<const Judged*>> sources = {{"", {}}};  // "": all
  for (const Judged& one : judged) {
    sources[""].push_back(&one);
    if (!one.source.empty()) sources[one.source].push_back(&one);
  }
  std::vector<session::EvalSet> sets;
  for (const auto& [name, some] : sources) {
    std::vector<double> right, margins;
    for (const Judged* one : some) {
      right.push_back(one->right());
      margins.push_back(one->margin());
    }
    TROUPE_TRY_ASSIGN(accuracy, learn::bootstrap_mean(right, 2000, 1));
    TROUPE_TRY_ASSIGN(margin, learn::bootstrap_mean(margins, 2000, 1));
    sets.push_back({name, some.size(), {{"accuracy", accuracy}, {"margin", margin}}});
  }
  return sets;
}

void print_json(const std::string& reward,
                const std::string& data,
                const std::vector<session::EvalSet>& sets,
                std::uint64_t lost) {
  Json line = {{"reward_model", reward}, {"data", data}};
  if (lost > 0) line["lost"] = lost;
  line.update(figures_json(sets.front(), "pairs"));
  for (std::size_t i = 1; i < sets.size(); ++i)
    line["sets"][sets[i].name] = figures_json(sets[i], "pairs");
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace

void PairFlags::add_to(std::vector<cli::Flag>& flags) {
  flags.push_back({"--reward-model", &model,
                   "without --model: report its accuracy on pairs; with it: add its scores"});
  flags.push_back({"--chosen-key,--data.chosen_key", &chosen, "column of the better answer"});
  flags.push_back({"--rejected-key,--data.rejected_key", &rejected, "column of the worse answer"});
}

Result<void> print_pair_accuracy(const EvalFlags& flags) {
  TROUPE_TRY_ASSIGN(options, flags.prompts.options());
  TROUPE_TRY_ASSIGN(prompts, data::load_prompts(flags.prompts.data, options.columns));
  std::vector<actors::RewardGroup> groups;
  for (const data::PromptRow& row : prompts)
    TROUPE_TRY(add_pair(row, flags.pairs, groups));
  TROUPE_TRY_ASSIGN(team, cli::make_team(flags.placement));
  const bool learned = !flags.pairs.model.empty();
  auto source = learned ? flags.prompts.model_source(flags.pairs.model, false, *team)
                        : flags.reward.source(session::columns_of_rows(prompts, "--data"));
  if (!source) return source.failure();
  TROUPE_TRY_ASSIGN(scores, session::score_items(**source, groups, flags.reward.deadline()));
  std::uint64_t lost = 0;
  std::string cause;
  std::vector<Judged> judged;
  std::string lines;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::size_t missing = scores[2 * i].value ? 2 * i + 1 : 2 * i;
    if (!scores[missing].value) {
      if (lost++ == 0) cause = prompts[i].where + " cannot be scored: " + scores[missing].cause;
      if (learned || lost == prompts.size()) return fail(ErrorCode::kData, cause);
      continue;
    }
    Json row = parse::written_json<Json>(prompts[i].columns_json);
    const Judged& one = judged.emplace_back(
        Judged{*scores[2 * i].value, *scores[2 * i + 1].value, source_of(row, flags.source_key)});
    row["chosen_reward"] = one.chosen;
    row["rejected_reward"] = one.rejected;
    row["margin"] = one.margin();
    lines += json_line(row);
  }
  TROUPE_TRY_ASSIGN(sets, sets_of(judged));
  if (!flags.out.empty()) TROUPE_TRY(store::replace_file(flags.out, lines));
  if (flags.json) {
    print_json(learned ? flags.pairs.model : (*source)->name(), flags.prompts.data, sets, lost);
    return {};
  }
  print_figures(sets, flags.prompts.data, "pairs");
  if (lost > 0) {
    std::printf("%lu pairs without a score are left out; the first: %s\n", lost, cause.c_str());
  }
  return {};
}

}  // namespace troupe::app
