#include "runtime/config/eval_sets.hpp"

#include "runtime/config/builder.hpp"
#include "runtime/config/entries.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/limits.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

// The key that an entry of a set stands for; "" when it is none.
std::string key_of(const std::string& entry) {
  if (entry == "dataset") return "eval.dataset";
  if (entry == "label_key" || entry == "input_key") return "data." + entry;
  const std::string key = "reward." + entry;
  return keys().find(key) == nullptr ? std::string() : key;
}

Result<HeldOutSet> set_of(const TrainConfig& run,
                          const YAML::Node& name,
                          const YAML::Node& entries) {
  if (!name.IsScalar() || !good_entry_name(name.Scalar())) {
    return refuse("a set's name has 1 to ", core::limits::kEvalSetName_bytes_max,
                  " letters, digits, dots, dashes and underscores");
  }
  HeldOutSet set{name.Scalar(), run};
  const auto bad = [&](const auto&... why) { return refuse("set ", set.name, ": ", why...); };
  if (!entries.IsMap()) return bad("expected {dataset: FILE, ...}");
  set.config.eval.sets.clear();
  set.config.eval.dataset.clear();
  TrainConfig with = set.config;
  with.reward = default_config().reward;
  with.reward.deadline_s = run.reward.deadline_s;
  with.reward.away_s = run.reward.away_s;
  for (const auto& entry : entries) {
    const std::string key = entry.first.IsScalar() ? key_of(entry.first.Scalar()) : std::string();
    if (key.empty()) {
      return bad(entry.first.IsScalar() ? entry.first.Scalar() : "a list", " is not a key of a set",
                 kThen,
                 "it takes dataset, label_key, input_key and the keys of the section reward, "
                 "without 'reward.'");
    }
    auto setting = entry_setting(key, entry.second, "eval.sets");
    if (!setting) return bad(saying_of(setting.error()));
    set.own_rewards = set.own_rewards || key.starts_with("reward.");
    if (auto done = keys().find(key)->set(with, *setting); !done)
      return bad(saying_of(done.error()));
  }
  if (with.eval.dataset.empty()) return bad("has no dataset", kThen, "give dataset: FILE");
  if (!set.own_rewards) with.reward = run.reward;
  set.config = std::move(with);
  if (const Saying why = broken_rule(set.config, "reward."); set.own_rewards && !why.empty()) {
    return bad(why);
  }
  return set;
}

Result<HeldOutSet> parse_item(const TrainConfig& run, const std::string& item) {
  try {
    const YAML::Node map = YAML::Load(item);
    if (!map.IsMap() || map.size() != 1) {
      return refuse("'", item.substr(0, 80), "' is not NAME: {dataset: FILE, ...}");
    }
    return set_of(run, map.begin()->first, map.begin()->second);
  } catch (const YAML::Exception& error) {
    return not_yaml(item, error);
  }
}

}  // namespace

Result<std::vector<HeldOutSet>> eval_sets(const TrainConfig& config) {
  std::vector<HeldOutSet> sets;
  if (!config.eval.dataset.empty()) {
    sets.push_back({"", config});
    sets.back().config.eval.sets.clear();
  }
  if (config.eval.sets.size() > core::limits::kEvalSets_max) {
    return refuse("names ", config.eval.sets.size(), " sets", kThen, "at most ",
                  core::limits::kEvalSets_max);
  }
  for (const std::string& item : config.eval.sets) {
    TROUPE_TRY_ASSIGN(set, parse_item(config, item));
    const auto same = [&](const HeldOutSet& other) { return other.name == set.name; };
    if (std::ranges::any_of(sets, same)) return refuse("set ", set.name, " is given twice");
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace troupe::config
