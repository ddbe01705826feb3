#include "apps/session/roles/make_reward.hpp"

#include "actors/protocol/key_place.hpp"
#include "actors/reward/http_reward.hpp"
#include "actors/reward/judge_reward.hpp"
#include "actors/reward/python_reward.hpp"
#include "actors/reward/queued_reward.hpp"
#include "actors/reward/rule_reward.hpp"
#include "actors/reward/rule_workers.hpp"
#include "apps/cli/words.hpp"
#include "runtime/core/check.hpp"

namespace troupe::session {

core::Result<std::unique_ptr<actors::reward::RewardCalls>> make_reward(
    const config::TrainConfig& config) {
  if (!config.reward.http.empty()) {
    const bool samples = config.reward.http_format == "sample";
    return actors::reward::make_http_reward(
        config.reward.http,
        samples ? actors::reward::RewardFormat::kSample : actors::reward::RewardFormat::kOpenRlhf);
  }
  if (!config.reward.python.empty()) {
    actors::reward::PythonRewardOptions options;
    options.take(config.reward);
    return actors::reward::make_python_reward(std::move(options));
  }
  if (config.reward.rule.empty()) return make_judge(config);
  const auto workers = static_cast<std::size_t>(config.reward.workers);
  if (config.reward.rule == "math") return actors::reward::make_math_reward(workers, &cli::say);
  if (config.reward.rule == "code") {
    actors::reward::CodeRewardOptions options;
    options.take(config.reward.code);
    options.workers = workers;
    return actors::reward::make_code_reward(options);
  }
  const auto kind = actors::reward::rule_kind(config.reward.rule);
  TROUPE_CHECK(kind.has_value(), "the configuration table knows the rules");
  TROUPE_TRY_ASSIGN(rule, actors::reward::make_rule_reward(*kind, config.reward.rule_pattern));
  return actors::reward::make_queued_reward(std::move(rule));
}

core::Result<std::unique_ptr<actors::reward::RewardCalls>> make_judge(
    const config::TrainConfig& config) {
  actors::reward::JudgeOptions options;
  options.take(config.reward);
  TROUPE_TRY_SET(options.rubric, actors::reward::read_rubric(config.reward.judge_rubric));
  TROUPE_TRY_SET(options.key, actors::read_key(config.reward.judge_key, "the judge's API key",
                                               "--reward.judge_key"));
  return actors::reward::make_judge_reward(std::move(options));
}

}  // namespace troupe::session
