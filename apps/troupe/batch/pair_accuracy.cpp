// Pairs to scores to two figures.
#include "apps/troupe/batch/pair_accuracy.hpp"

#include "apps/troupe/batch/model_source.hpp"
#include "apps/troupe/batch/reward_flags.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/learn/evaluation.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace troupe::app {
namespace {

using Json = nlohmann::ordered_json;

// The answers of one row, each with the prompt, in the order chosen, rejected.
core::Result<void> add_pair(const data::PromptRow& row,
                            const PairFlags& pairs,
                            std::vector<actors::RewardItem>& items) {
  const Json columns = Json::parse(row.columns_json);
  for (const std::string& key : {pairs.chosen, pairs.rejected}) {
    const auto answer = columns.find(key);
    if (answer == columns.end() || !answer->is_string()) {
      return core::fail(core::ErrorCode::kData, row.where + ": no text in column '" + key +
                                                    "'; set --chosen-key and --rejected-key");
    }
    items.push_back({row.prompt, answer->get<std::string>(), row.label, row.columns_json});
  }
  return {};
}

}  // namespace

void PairFlags::add_to(std::vector<Flag>& flags) {
  flags.push_back({"--reward-model", &model,
                   "without --model: its accuracy on pairs; with: its scores beside"});
  flags.push_back({"--chosen-key,--data.chosen_key", &chosen, "column of the better answer"});
  flags.push_back({"--rejected-key,--data.rejected_key", &rejected, "column of the worse answer"});
}

core::Result<void> print_pair_accuracy(const PairFlags& pairs,
                                       const PromptFlags& rows,
                                       const Placement& placement,
                                       bool json) {
  TROUPE_TRY_ASSIGN(options, rows.options());
  TROUPE_TRY_ASSIGN(prompts, data::load_prompts(rows.data, options.columns));
  std::vector<actors::RewardItem> items;
  for (const data::PromptRow& row : prompts)
    TROUPE_TRY(add_pair(row, pairs, items));
  TROUPE_TRY_ASSIGN(team, make_team(placement));
  TROUPE_TRY_ASSIGN(source, model_source({pairs.model, false, rows.chat, rows.input_key}, *team));
  TROUPE_TRY_ASSIGN(scores, score_items(*source, items, core::limits::kRewardDeadline));
  std::vector<double> right, margins;
  for (std::size_t i = 0; i < scores.size(); i += 2) {
    for (std::size_t side = i; side < i + 2; ++side) {
      if (!scores[side].value) {
        return core::fail(core::ErrorCode::kData,
                          prompts[i / 2].where + " cannot be scored: " + scores[side].cause);
      }
    }
    const double margin = *scores[i].value - *scores[i + 1].value;
    margins.push_back(margin);
    right.push_back(margin > 0 ? 1 : margin < 0 ? 0 : 0.5);
  }
  TROUPE_TRY_ASSIGN(accuracy, learn::bootstrap_mean(right, 2000, 1));
  TROUPE_TRY_ASSIGN(margin, learn::bootstrap_mean(margins, 2000, 1));
  if (json) {
    const auto figure = [](const learn::Interval& value) {
      return Json{{"mean", value.mean}, {"low", value.low}, {"high", value.high}};
    };
    const Json line = {{"reward_model", pairs.model},
                       {"data", rows.data},
                       {"pairs", right.size()},
                       {"accuracy", figure(accuracy)},
                       {"margin", figure(margin)}};
    std::printf("%s\n", line.dump().c_str());
    return {};
  }
  std::printf("%s, %zu pairs   (95 %% bootstrap interval)\n", rows.data.c_str(), right.size());
  std::printf("  %-16s %8.4f   [%.4f, %.4f]\n", "accuracy", accuracy.mean, accuracy.low,
              accuracy.high);
  std::printf("  %-16s %8.4f   [%.4f, %.4f]\n", "margin", margin.mean, margin.low, margin.high);
  return {};
}

}  // namespace troupe::app
