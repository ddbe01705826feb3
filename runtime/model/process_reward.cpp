#include "runtime/model/process_reward.hpp"

#include <nlohmann/json.hpp>

namespace troupe::model {
namespace {

using nlohmann::ordered_json;

constexpr const char* kKey = "process_reward";

}  // namespace

core::Result<std::optional<ProcessReward>> process_reward_of(const ModelSpec& spec) {
  const auto config = ordered_json::parse(spec.config_json, nullptr, false);
  if (!config.is_object() || !config.contains(kKey)) return std::optional<ProcessReward>();
  try {
    const ordered_json& object = config.at(kKey);
    return std::optional(ProcessReward{object.at("placeholder_token").get<std::string>(),
                                       object.at("reward_tokens").get<std::vector<std::string>>(),
                                       object.at("step_separator").get<std::string>()});
  } catch (const ordered_json::exception&) {
    return core::fail(core::ErrorCode::kData,
                      "config.json: `process_reward` must be an object with the texts "
                      "placeholder_token and step_separator and the list reward_tokens");
  }
}

std::string with_process_reward(const std::string& config_json, const ProcessReward& facts) {
  auto config = ordered_json::parse(config_json);
  config[kKey] = {{"placeholder_token", facts.placeholder},
                  {"reward_tokens", facts.rewards},
                  {"step_separator", facts.separator}};
  return config.dump(2) + "\n";
}

}  // namespace troupe::model
