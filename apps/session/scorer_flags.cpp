#include "apps/session/scorer_flags.hpp"

#include "actors/reward/process_reward.hpp"
#include "actors/reward/rule_reward.hpp"
#include "actors/reward/rule_workers.hpp"
#include "runtime/config/read.hpp"
#include "runtime/core/split.hpp"

namespace troupe::session {

std::vector<std::string> split_commas(const std::vector<std::string>& given) {
  std::vector<std::string> words;
  for (const std::string& text : given) {
    for (const std::string_view word : core::split(text, ","))
      words.emplace_back(word);
  }
  return words;
}

core::Result<void> check_rule(const std::string& rule) {
  if (rule.empty() || actors::reward::rule_kind(rule) || actors::reward::in_workers(rule))
    return {};
  return core::fail(ErrorCode::kConfig, "there is no rule '" + rule + "'",
                    std::string("--rule takes ") + kRuleNames);
}

bool compares_label(const std::string& rule) {
  return rule == "exact" || rule == "last_number" || actors::reward::in_workers(rule);
}

void CodeFlags::add_to(std::vector<cli::Flag>& flags) {
  flags.push_back({"--code-timeout", &timeout_s,
                   "of --rule code: seconds of a program for all tests of its row", false, 0.001,
                   3600});
  flags.push_back({"--code-memory", &memory_mb, "of --rule code: memory of a program, MiB", false,
                   32, 1 << 20});
  flags.push_back({"--code-score", &score,
                   "of --rule code: share (of the tests that pass), or all (1 if all pass)"});
}

core::Result<void> CodeFlags::check(const std::string& rule) const {
  if (score != "share" && score != "all") {
    return core::fail(ErrorCode::kConfig, "--code-score: '" + score + "'", "expected share or all");
  }
  if (rule == "code" || settings().empty()) return {};
  return core::fail(ErrorCode::kConfig, settings().front().first + " is read with --rule code",
                    "leave it out");
}

void CodeFlags::fill(config::TrainConfig& config) const {
  config.reward.code.timeout_s = timeout_s;
  config.reward.code.memory_mb = memory_mb;
  config.reward.code.score = score;
}

std::vector<std::pair<std::string, std::string>> CodeFlags::settings() const {
  const CodeFlags usual;
  std::vector<std::pair<std::string, std::string>> all;
  if (timeout_s != usual.timeout_s) all.emplace_back("--code-timeout", std::to_string(timeout_s));
  if (memory_mb != usual.memory_mb) all.emplace_back("--code-memory", std::to_string(memory_mb));
  if (score != usual.score) all.emplace_back("--code-score", score);
  return all;
}

void ProcessFlags::add_to(std::vector<cli::Flag>& flags, std::string_view reduce_help) {
  flags.push_back({"--process-model", &model,
                   "process reward model (troupe train prm), which scores each step"});
  flags.push_back({"--reduce", &reduce, reduce_help});
  flags.push_back(
      {"--step-separator", &separator,
       "of --process-model: text between two steps; \\n is a newline; else as trained"});
  flags.push_back({"--placeholder-token", &placeholder,
                   "of --process-model: token after a step; else as trained"});
  flags.push_back({"--reward-tokens", &reward_tokens,
                   "of --process-model: tokens of the choice, the best first; else as trained"});
}

core::Result<void> ProcessFlags::check(bool steps) const {
  if (model.empty() && (!reduce.empty() || read_alone())) {
    return core::fail(ErrorCode::kConfig,
                      std::string(!reduce.empty()        ? "--reduce"
                                  : !separator.empty()   ? "--step-separator"
                                  : !placeholder.empty() ? "--placeholder-token"
                                                         : "--reward-tokens") +
                          " is read with --process-model",
                      "leave it out");
  }
  if (reduce.empty() || actors::reward::step_reduce(reduce) || (steps && reduce == "steps"))
    return {};
  return core::fail(
      ErrorCode::kConfig, "--reduce: '" + reduce + "'",
      std::string("expected ") + (steps ? "steps, " : "") + "last, min, mean or product");
}

void ProcessFlags::fill(config::TrainConfig& config) const {
  auto& own = config.reward.process;
  own.model_name_or_path = model;
  if (!reduce.empty()) own.reduce = reduce;
  own.placeholder_token = placeholder;
  own.step_separator = config::unescape_flag(separator);
  own.reward_tokens = split_commas(reward_tokens);
}

std::vector<std::pair<std::string, std::string>> ProcessFlags::settings() const {
  if (model.empty()) return {};
  std::string tokens;
  for (const std::string& token : split_commas(reward_tokens))
    tokens += (tokens.empty() ? "" : ",") + token;
  return {{"--reduce", reduce},
          {"--step-separator", separator},
          {"--placeholder-token", placeholder},
          {"--reward-tokens", tokens}};
}

}  // namespace troupe::session
