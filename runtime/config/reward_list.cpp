#include "runtime/config/reward_list.hpp"

#include "runtime/config/builder.hpp"
#include "runtime/config/entries.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/config/reward_names.hpp"

#include <algorithm>

namespace troupe::config {
namespace {

constexpr const char* kKey = "reward.list";

// Keys of the section that speak of all rewards together, or of the run.
bool speaks_of_all(const std::string& entry) {
  for (const char* key : {"list", "weights", "formula", "normalize", "clip_range", "clip_order",
                          "feedback", "device", "deadline_s", "away_s"}) {
    if (entry == key) return true;
  }
  return entry.starts_with("overlong_") || entry.starts_with("stop_properly_");
}

std::size_t rewards_in(const TrainConfig& c) {
  const auto& reward = c.reward;
  return !reward.rule.empty() + !reward.python.empty() + !reward.http.empty() +
         !reward.judge.empty() + reward.model_name_or_path.size() +
         !reward.process.model_name_or_path.empty();
}

// The run's settings without its rewards.
TrainConfig without_rewards(const TrainConfig& run) {
  TrainConfig config = run;
  config.reward = default_config().reward;
  config.reward.workers = run.reward.workers;
  config.reward.interpreter = run.reward.interpreter;
  config.reward.deadline_s = run.reward.deadline_s;
  config.reward.away_s = run.reward.away_s;
  config.reward.device = run.reward.device;
  if (run.reward.normalize == Normalize::kStored) config.reward.normalize = run.reward.normalize;
  return config;
}

Result<void> take(ListedReward& reward, const std::string& entry, const YAML::Node& value) {
  if (entry == "name") {
    if (!value.IsScalar()) return refuse("name has no plain value");
    reward.name = value.Scalar();
    return {};
  }
  if (entry == "weight") {
    if (!value.IsScalar() || !YAML::convert<double>::decode(value, reward.weight) ||
        !(reward.weight >= -1e6 && reward.weight <= 1e6)) {
      return refuse("weight: expected a number from -1e6 to 1e6");
    }
    return {};
  }
  const std::string key = "reward." + entry;
  if (speaks_of_all(entry) || keys().find(key) == nullptr) {
    return refuse(entry, " is not a key of one reward", kThen,
                  "it takes name, weight and the keys of the section reward that say what a reward "
                  "is, without 'reward.'");
  }
  TROUPE_TRY_ASSIGN(setting, entry_setting(key, value, kKey));
  return keys().find(key)->set(reward.config, setting);
}

Result<ListedReward> reward_of(const TrainConfig& run,
                               const std::string& name,
                               const YAML::Node& entries) {
  ListedReward reward{name, 1, without_rewards(run)};
  for (const auto& entry : entries) {
    if (!entry.first.IsScalar()) return refuse("a list is not a key of a reward");
    TROUPE_TRY(take(reward, entry.first.Scalar(), entry.second));
  }
  TrainConfig& own = reward.config;
  // Processes for Python serve only what runs in them.
  const bool has_workers =
      !own.reward.python.empty() || own.reward.rule == "math" || own.reward.rule == "code";
  if (!has_workers) own.reward.workers = default_config().reward.workers;
  const std::size_t count = rewards_in(own);
  if (count != 1) {
    if (count > 1) return refuse("names several rewards", kThen, "give each an item of its own");
    return refuse("names no reward", kThen,
                  "give it a rule, python, http, judge, model_name_or_path or "
                  "process.model_name_or_path");
  }
  if (reward.name.empty()) reward.name = name_of_reward(own);
  if (const Saying why = broken_rule(own, "reward."); !why.empty()) return refuse(why);
  return reward;
}

Result<ListedReward> parse_reward(const TrainConfig& run, const std::string& text) {
  try {
    const YAML::Node map = YAML::Load(text);
    if (!map.IsMap() || map.size() == 0) {
      return refuse("'", text.substr(0, 80), "' is not NAME: {rule: ..., weight: ...}");
    }
    const bool named = map.size() == 1 && map.begin()->second.IsMap();
    const std::string name = named ? map.begin()->first.Scalar() : std::string();
    auto reward = reward_of(run, name, named ? map.begin()->second : map);
    if (!reward) {
      return refuse(named ? "reward " + name : "'" + text.substr(0, 80) + "'", ": ",
                    saying_of(reward.error()));
    }
    if (!good_entry_name(reward->name)) {
      return refuse("'", reward->name.substr(0, 80),
                    "' is no name of a reward: letters, digits, dots, dashes and underscores",
                    kThen, "write NAME: {...}");
    }
    if (const std::string why = own_word_fault(reward->name); !why.empty()) {
      return refuse(why, kThen, "write NAME: {...} with another name");
    }
    return reward;
  } catch (const YAML::Exception& error) {
    return not_yaml(text, error);
  }
}

}  // namespace

Text name_of_reward(const TrainConfig& config) {
  const auto& reward = config.reward;
  if (!reward.python.empty()) return name_of_file(reward.python);
  if (!reward.http.empty()) return "http";
  if (!reward.rule.empty()) return reward.rule;
  if (!reward.judge.empty()) return "judge";
  const auto& models = reward.model_name_or_path;
  return name_of_folder(models.empty() ? reward.process.model_name_or_path : models.front());
}

Result<std::vector<ListedReward>> listed_rewards(const TrainConfig& config) {
  std::vector<ListedReward> all;
  for (const std::string& item : config.reward.list) {
    TROUPE_TRY_ASSIGN(reward, parse_reward(config, item));
    const auto same = [&](const ListedReward& other) { return other.name == reward.name; };
    if (std::ranges::any_of(all, same)) {
      return refuse("reward ", reward.name, " is given twice", kThen,
                    "write NAME: {...} to name each");
    }
    all.push_back(std::move(reward));
  }
  return all;
}

}  // namespace troupe::config
