// The flags of `score`, `eval` and `attach reward` that say what gives the scores: a rule, a Python
// file, a server or a judge. Also scores items with it, and extracts answers for majority votes. A
// value type and functions.
#pragma once

#include "actors/reward/reward_calls.hpp"
#include "actors/reward/reward_source.hpp"
#include "apps/cli/flags.hpp"
#include "apps/session/reward_columns.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/scorer_flags.hpp"
#include "runtime/core/team.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::session {

// The flags of a judge.
struct JudgeFlags {
  std::vector<std::string> urls;
  std::string model, rubric, key;

  void add_to(std::vector<cli::Flag>& flags);
  bool given() const { return !urls.empty(); }
  // Error (kConfig): a flag that is read with --judge alone, or a judge without a rubric.
  core::Result<void> check() const;
  void fill(config::TrainConfig& config) const;
};

struct RewardFlags {
  std::string rule, pattern, python, interpreter = "python3", http_format = "openrlhf";
  JudgeFlags judge;
  std::vector<std::string> http;
  std::int64_t workers = 1;
  double deadline_s = 30;
  CodeFlags code;

  // Appends flags that fill this object when they are parsed; it must live until then. The first
  // without --deadline.
  void add_sources_to(std::vector<cli::Flag>& flags);
  void add_to(std::vector<cli::Flag>& flags);

  // How many of rule, file, servers and judge are given.
  int count() const { return !rule.empty() + !python.empty() + !http.empty() + judge.given(); }
  bool given() const { return count() > 0; }
  // Error (kConfig): an unknown rule or format, or a flag that is only read with another.
  core::Result<void> check() const;
  // Error (kConfig): the rule compares with a label, and `label_key` names no column for it.
  core::Result<void> check_label(const std::string& label_key) const;
  // Errors (kConfig): those of `check`; several or none given; a bad file, pattern or address.
  core::Result<std::unique_ptr<actors::reward::RewardCalls>> calls() const;
  // Like `calls`, for commands that score rows by batch. Also kConfig: the rows lack a column
  // that the Python function takes.
  core::Result<std::unique_ptr<actors::reward::RewardSource>> source(const RowColumns& rows) const;
  core::Duration deadline() const { return seconds_of(deadline_s); }

  // The settings that a file of scores depends on, with the identity of the Python file in place of
  // its name. Error: the Python file cannot be read.
  core::Result<std::vector<std::pair<std::string, std::string>>> settings() const;
};

// Scores all samples in calls of at most `kScoreRows` samples or one group. It never splits a
// group, so a reward that compares the samples of its batch sees the same ones wherever the work is
// resumed. A call that fails is retried as in training.
inline constexpr std::size_t kScoreRows = 64;
core::Result<std::vector<actors::reward::RewardScore>> score_items(
    actors::reward::RewardSource& source,
    const std::vector<actors::RewardGroup>& groups,
    core::Duration deadline);

// The answer in a response, for majority votes: what the rule compares (the first line; the last
// number; group 1, or the match, of the pattern; the last \boxed{...} or else number), else the
// whole text; trimmed. Empty: no answer. The pattern is one that `RewardFlags::source` or a
// configuration has accepted.
std::string answer_of(const std::string& rule,
                      const std::string& pattern,
                      const std::string& response);

}  // namespace troupe::session
