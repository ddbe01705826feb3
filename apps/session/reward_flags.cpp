#include "apps/session/reward_flags.hpp"

#include "actors/reward/blocking_reward.hpp"
#include "actors/reward/reward_retries.hpp"
#include "actors/reward/rule_reward.hpp"
#include "actors/reward/rule_workers.hpp"
#include "apps/cli/part_file.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/session/roles/make_reward.hpp"

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

}  // namespace

void RewardFlags::add_sources_to(std::vector<cli::Flag>& flags) {
  flags.push_back(
      {"--rule", &rule, "score against the label: exact, last_number, regex, math or code"});
  flags.push_back({"--pattern", &pattern, "regular expression of --rule regex (ECMAScript)"});
  flags.push_back({"--python", &python, "file with reward_func, run in a worker process"});
  flags.push_back({"--workers", &workers, "processes that run --python, or the rules math and code",
                   false, 1, 256});
  flags.push_back({"--interpreter", &interpreter, "Python that runs --python"});
  code.add_to(flags);
  flags.push_back({"--http", &http, "URL of a reward server; repeated, they share the requests"});
  flags.push_back({"--http-format", &http_format,
                   "of --http: openrlhf (lists), or sample ({prompt, response, label})"});
  judge.add_to(flags);
}

void RewardFlags::add_to(std::vector<cli::Flag>& flags) {
  add_sources_to(flags);
  flags.push_back({"--deadline", &deadline_s, "longest wait for one batch of scores, seconds",
                   false, 0.001, 86400});
}

void JudgeFlags::add_to(std::vector<cli::Flag>& flags) {
  flags.push_back({"--judge", &urls,
                   "URL of a model that judges, as http://HOST:PORT/v1; repeated, they share the "
                   "requests"});
  flags.push_back({"--judge-model", &model, "of --judge: the model's name at its server"});
  flags.push_back({"--rubric", &rubric, "of --judge: the YAML file that says what it is asked"});
  flags.push_back({"--judge-key", &key, "of --judge: where the API key is, env:NAME or file:PATH"});
}

core::Result<void> JudgeFlags::check() const {
  const bool more = !model.empty() || !rubric.empty() || !key.empty();
  if (!given() && more) {
    return core::fail(core::ErrorCode::kConfig,
                      "--rubric, --judge-model and --judge-key are read with --judge",
                      "give the URL of the judge");
  }
  if (given() && rubric.empty()) {
    return core::fail(core::ErrorCode::kConfig, "--judge needs a file that says what it is asked",
                      "give --rubric");
  }
  return {};
}

void JudgeFlags::fill(config::TrainConfig& config) const {
  config.reward.judge = split_commas(urls);
  config.reward.judge_model = model;
  config.reward.judge_rubric = rubric;
  config.reward.judge_key = key;
}

core::Result<void> RewardFlags::check_label(const std::string& label_key) const {
  if (!compares_label(rule) || !label_key.empty()) return {};
  return core::fail(core::ErrorCode::kConfig, "--rule " + rule + " compares with a label",
                    "give --label-key");
}

core::Result<std::unique_ptr<actors::reward::RewardSource>> RewardFlags::source(
    const RowColumns& rows) const {
  TROUPE_TRY_ASSIGN(made, calls());
  TROUPE_TRY(check_needs("--python", python, made->needs(), rows));
  return actors::reward::make_blocking_reward(std::move(made));
}

core::Result<void> RewardFlags::check() const {
  TROUPE_TRY(judge.check());
  TROUPE_TRY(check_rule(rule));
  TROUPE_TRY(code.check(rule));
  if (rule == "regex" && pattern.empty()) {
    return core::fail(core::ErrorCode::kConfig, "--rule regex needs a pattern", "give --pattern");
  }
  if (workers != 1 && python.empty() && !actors::reward::in_workers(rule)) {
    return core::fail(core::ErrorCode::kConfig,
                      "--workers is read with --python and the rules math and code",
                      "leave it out");
  }
  if (interpreter != "python3" && python.empty()) {
    return core::fail(core::ErrorCode::kConfig, "--interpreter is read with --python",
                      "leave it out");
  }
  if (http_format != "openrlhf" && http.empty()) {
    return core::fail(core::ErrorCode::kConfig, "--http-format is read with --http",
                      "leave it out");
  }
  if (http_format != "openrlhf" && http_format != "sample") {
    return core::fail(core::ErrorCode::kConfig,
                      "--http-format: there is no format '" + http_format + "'",
                      "expected openrlhf or sample");
  }
  return {};
}

core::Result<std::unique_ptr<actors::reward::RewardCalls>> RewardFlags::calls() const {
  TROUPE_TRY(check());
  if (count() != 1) {
    return core::fail(core::ErrorCode::kConfig, "give one of --rule, --python, --http and --judge");
  }
  config::TrainConfig config;
  config.reward.rule = rule;
  config.reward.rule_pattern = pattern;
  config.reward.python = python;
  config.reward.workers = workers;
  config.reward.interpreter = interpreter;
  config.reward.http = split_commas(http);
  config.reward.http_format = http_format;
  code.fill(config);
  judge.fill(config);
  return make_reward(config);
}

core::Result<std::vector<std::pair<std::string, std::string>>> RewardFlags::settings() const {
  std::string identity;
  if (!python.empty()) {
    TROUPE_TRY_SET(identity, cli::file_identity(python));
  }
  std::string urls;
  for (const std::string& url : http)
    urls += (urls.empty() ? "" : ",") + url;
  std::vector<std::pair<std::string, std::string>> all = {
      {"--rule", rule}, {"--pattern", pattern}, {"--python", identity}, {"--http", urls}};
  if (http_format != "openrlhf") all.emplace_back("--http-format", http_format);
  for (auto& setting : code.settings())
    all.push_back(std::move(setting));
  if (judge.given()) {
    TROUPE_TRY_ASSIGN(rubric, cli::file_identity(judge.rubric));
    all.emplace_back("--judge-model", judge.model);
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
