#include "apps/session/reward_flags.hpp"

#include "actors/reward/blocking_reward.hpp"
#include "actors/reward/process_reward.hpp"
#include "actors/reward/reward_retries.hpp"
#include "actors/reward/rule_reward.hpp"
#include "actors/reward/rule_workers.hpp"
#include "apps/cli/part_file.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/session/roles/make_reward.hpp"
#include "runtime/config/read.hpp"
#include "runtime/core/split.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <regex>

namespace troupe::session {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string pattern_answer(const std::string& pattern, const std::string& response) {
  try {
    std::smatch match;
    if (!std::regex_search(response, match, std::regex(pattern))) return {};
    return trimmed(match[match.size() > 1 ? 1 : 0].str());
  } catch (const std::regex_error&) {
    return {};  // the text is too long for std::regex: no answer
  }
}

// What the last \\boxed{...} holds, else the last number.
std::string boxed_answer(const std::string& response) {
  const std::string begin = "\\boxed{";
  const auto at = response.rfind(begin);
  if (at == response.npos) return answer_of("last_number", "", response);
  int depth = 1;
  const auto inside = at + begin.size();
  for (auto end = inside; end < response.size(); ++end) {
    depth += response[end] == '{' ? 1 : response[end] == '}' ? -1 : 0;
    if (depth == 0) return trimmed(response.substr(inside, end - inside));
  }
  return {};
}

// Error kConfig: there is no such rule.
core::Result<void> check_rule(const std::string& rule) {
  if (rule.empty() || actors::reward::rule_kind(rule) || actors::reward::in_workers(rule))
    return {};
  return core::fail(ErrorCode::kConfig, "there is no rule '" + rule + "'",
                    "--rule takes exact, last_number, regex, math or code");
}

// Whether the rule compares with a label, so that it needs one.
bool compares_label(const std::string& rule) {
  return rule == "exact" || rule == "last_number" || actors::reward::in_workers(rule);
}

}  // namespace

std::vector<std::string> split_commas(const std::vector<std::string>& given) {
  std::vector<std::string> words;
  for (const std::string& text : given) {
    for (const std::string_view word : core::split(text, ","))
      words.emplace_back(word);
  }
  return words;
}

void RewardFlags::add_sources_to(std::vector<cli::Flag>& flags) {
  auto& to = config.reward;
  const std::vector<cli::Flag> own = {
      {"--rule", &to.rule, "score against the label: exact, last_number, regex, math or code"},
      {"--pattern", &to.rule_pattern, "regular expression of --rule regex (ECMAScript)"},
      {"--python", &to.python, "file with reward_func, run in a worker process"},
      {"--workers", &to.workers, "processes that run --python, or the rules math and code", false,
       1, 256},
      {"--interpreter", &to.interpreter, "Python that runs --python"},
      {"--code-timeout", &to.code.timeout_s,
       "of --rule code: seconds of a program for all tests of its row", false, 0.001, 3600},
      {"--code-memory", &to.code.memory_mb, "of --rule code: memory of a program, MiB", false, 32,
       1 << 20},
      {"--code-score", &to.code.score,
       "of --rule code: share (of the tests that pass), or all (1 if all pass)"},
      {"--http", &to.http, "URL of a reward server; repeated, they share the requests"},
      {"--http-format", &to.http_format,
       "of --http: openrlhf (lists), or sample ({prompt, response, label})"},
      {"--judge", &to.judge,
       "URL of a model that judges, as http://HOST:PORT/v1; repeated, they share the requests"},
      {"--judge-model", &to.judge_model, "of --judge: the model's name at its server"},
      {"--rubric", &to.judge_rubric, "of --judge: the YAML file that says what it is asked"},
      {"--judge-key", &to.judge_key, "of --judge: where the API key is, env:NAME or file:PATH"}};
  flags.insert(flags.end(), own.begin(), own.end());
}

void RewardFlags::add_to(std::vector<cli::Flag>& flags) {
  add_sources_to(flags);
  flags.push_back({"--deadline", &config.reward.deadline_s,
                   "longest wait for one batch of scores, seconds", false, 0.001, 86400});
}

void RewardFlags::add_process_to(std::vector<cli::Flag>& flags, std::string_view reduce_help) {
  auto& to = config.reward.process;
  to.reduce.clear();  // not given
  const std::vector<cli::Flag> own = {
      {"--process-model", &to.model_name_or_path,
       "process reward model (troupe train prm), which scores each step"},
      {"--reduce", &to.reduce, reduce_help},
      {"--step-separator", &to.step_separator,
       "of --process-model: text between two steps; \\n is a newline; else as trained"},
      {"--placeholder-token", &to.placeholder_token,
       "of --process-model: token after a step; else as trained"},
      {"--reward-tokens", &to.reward_tokens,
       "of --process-model: tokens of the choice, the best first; else as trained"}};
  flags.insert(flags.end(), own.begin(), own.end());
}

core::Result<void> RewardFlags::check_process(bool steps) const {
  const auto& [model, reduce, baseline, placeholder, tokens, separator] = keys().process;
  const char* const first = !reduce.empty()        ? "--reduce"
                            : !separator.empty()   ? "--step-separator"
                            : !placeholder.empty() ? "--placeholder-token"
                            : !tokens.empty()      ? "--reward-tokens"
                                                   : nullptr;
  if (model.empty() && first != nullptr) {
    return core::fail(ErrorCode::kConfig, std::string(first) + " is read with --process-model",
                      "leave it out");
  }
  if (reduce.empty() || actors::reward::step_reduce(reduce) || (steps && reduce == "steps"))
    return {};
  return core::fail(
      ErrorCode::kConfig, "--reduce: '" + reduce + "'",
      std::string("expected ") + (steps ? "steps, " : "") + "last, min, mean or product");
}

config::TrainConfig RewardFlags::process_config(const char* reduce) const {
  config::TrainConfig one = config;
  auto& own = one.reward.process;
  if (own.reduce.empty()) own.reduce = reduce;
  own.step_separator = config::unescape_flag(own.step_separator);
  own.reward_tokens = split_commas(own.reward_tokens);
  return one;
}

std::vector<std::pair<std::string, std::string>> RewardFlags::process_settings() const {
  if (!has_process()) return {};
  const auto& own = keys().process;
  return {{"--reduce", own.reduce},
          {"--step-separator", own.step_separator},
          {"--placeholder-token", own.placeholder_token},
          {"--reward-tokens", core::joined(own.reward_tokens, ",")}};
}

core::Result<void> RewardFlags::check_judge() const {
  const bool more =
      !keys().judge_model.empty() || !keys().judge_rubric.empty() || !keys().judge_key.empty();
  if (!has_judge() && more) {
    return core::fail(core::ErrorCode::kConfig,
                      "--rubric, --judge-model and --judge-key are read with --judge",
                      "give the URL of the judge");
  }
  if (has_judge() && keys().judge_rubric.empty()) {
    return core::fail(core::ErrorCode::kConfig, "--judge needs a file that says what it is asked",
                      "give --rubric");
  }
  return {};
}

core::Result<void> RewardFlags::check_label(const std::string& label_key) const {
  if (!compares_label(keys().rule) || !label_key.empty()) return {};
  return core::fail(core::ErrorCode::kConfig, "--rule " + keys().rule + " compares with a label",
                    "give --label-key");
}

core::Result<std::unique_ptr<actors::reward::RewardSource>> RewardFlags::source(
    const RowColumns& rows) const {
  TROUPE_TRY_ASSIGN(made, calls());
  TROUPE_TRY(check_needs("--python", keys().python, made->needs(), rows));
  return actors::reward::make_blocking_reward(std::move(made));
}

core::Result<void> RewardFlags::check_code() const {
  const std::string& score = keys().code.score;
  if (score != "share" && score != "all") {
    return core::fail(ErrorCode::kConfig, "--code-score: '" + score + "'", "expected share or all");
  }
  if (keys().rule == "code" || code_settings().empty()) return {};
  return core::fail(ErrorCode::kConfig, code_settings().front().first + " is read with --rule code",
                    "leave it out");
}

core::Result<void> RewardFlags::check() const {
  TROUPE_TRY(check_judge());
  TROUPE_TRY(check_rule(keys().rule));
  TROUPE_TRY(check_code());
  if (keys().rule == "regex" && keys().rule_pattern.empty()) {
    return core::fail(core::ErrorCode::kConfig, "--rule regex needs a pattern", "give --pattern");
  }
  if (keys().workers != 1 && keys().python.empty() && !actors::reward::in_workers(keys().rule)) {
    return core::fail(core::ErrorCode::kConfig,
                      "--workers is read with --python and the rules math and code",
                      "leave it out");
  }
  if (keys().interpreter != "python3" && keys().python.empty()) {
    return core::fail(core::ErrorCode::kConfig, "--interpreter is read with --python",
                      "leave it out");
  }
  const std::string& format = keys().http_format;
  if (format != "openrlhf" && keys().http.empty()) {
    return core::fail(core::ErrorCode::kConfig, "--http-format is read with --http",
                      "leave it out");
  }
  if (format != "openrlhf" && format != "sample") {
    return core::fail(core::ErrorCode::kConfig,
                      "--http-format: there is no format '" + format + "'",
                      "expected openrlhf or sample");
  }
  return {};
}

core::Result<std::unique_ptr<actors::reward::RewardCalls>> RewardFlags::calls() const {
  TROUPE_TRY(check());
  if (count() != 1) {
    return core::fail(core::ErrorCode::kConfig, "give one of --rule, --python, --http and --judge");
  }
  config::TrainConfig one = config;
  one.reward.http = split_commas(keys().http);
  one.reward.judge = split_commas(keys().judge);
  return make_reward(one);
}

std::vector<std::pair<std::string, std::string>> RewardFlags::code_settings() const {
  const auto& [timeout_s, memory_mb, score] = keys().code;
  const auto& usual = config::default_config().reward.code;
  std::vector<std::pair<std::string, std::string>> all;
  if (timeout_s != usual.timeout_s) all.emplace_back("--code-timeout", std::to_string(timeout_s));
  if (memory_mb != usual.memory_mb) all.emplace_back("--code-memory", std::to_string(memory_mb));
  if (score != usual.score) all.emplace_back("--code-score", score);
  return all;
}

core::Result<std::vector<std::pair<std::string, std::string>>> RewardFlags::settings() const {
  std::string identity;
  if (!keys().python.empty()) {
    TROUPE_TRY_SET(identity, cli::file_identity(keys().python));
  }
  std::vector<std::pair<std::string, std::string>> all = {
      {"--rule", keys().rule},
      {"--pattern", keys().rule_pattern},
      {"--python", identity},
      {"--http", core::joined(keys().http, ",")}};
  if (keys().http_format != "openrlhf") all.emplace_back("--http-format", keys().http_format);
  for (auto& setting : code_settings())
    all.push_back(std::move(setting));
  if (has_judge()) {
    TROUPE_TRY_ASSIGN(rubric, cli::file_identity(keys().judge_rubric));
    all.emplace_back("--judge-model", keys().judge_model);
    all.emplace_back("--rubric", rubric);
  }
  return all;
}

core::Result<std::vector<actors::reward::RewardScore>> score_items(
    actors::reward::RewardSource& source,
    const std::vector<actors::RewardGroup>& groups,
    core::Duration deadline) {
  std::vector<actors::reward::RewardScore> scores;
  actors::reward::RewardTries tries;
  actors::reward::SourcePatience patience;
  patience.stopped = [] { return cli::stop_requested().load(); };
  patience.say = [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  for (std::size_t begin = 0; begin < groups.size();) {
    if (cli::stop_requested()) return core::fail(core::ErrorCode::kInterrupted, "interrupted");
    std::vector<actors::RewardGroup> batch;
    std::size_t count = 0;
    while (begin < groups.size() &&
           (batch.empty() || count + groups[begin].samples.size() <= kScoreRows)) {
      count += groups[begin].samples.size();
      batch.push_back(groups[begin++]);
    }
    TROUPE_TRY_ASSIGN(some,
                      actors::reward::score_patiently(source, batch, deadline, tries, patience));
    if (some.size() != count) {
      return core::fail(core::ErrorCode::kData, "reward " + source.name() + " gave " +
                                                    std::to_string(some.size()) + " scores for " +
                                                    std::to_string(count) + " responses");
    }
    for (actors::reward::RewardScore& score : some)
      scores.push_back(std::move(score));
  }
  return scores;
}

std::string answer_of(const std::string& rule,
                      const std::string& pattern,
                      const std::string& response) {
  if (rule == "last_number") {
    const auto number = actors::reward::last_number(response);
    if (!number) return {};
    char text[40];
    return {text, std::to_chars(text, text + sizeof text, *number).ptr};
  }
  if (rule == "math") return boxed_answer(response);
  if (!pattern.empty()) return pattern_answer(pattern, response);
  const std::string text = trimmed(response);
  return rule == "exact" ? trimmed(text.substr(0, text.find('\n'))) : text;
}

}  // namespace troupe::session
