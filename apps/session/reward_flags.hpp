// The flags of `score`, `eval` and `attach reward` that say what gives the scores: a rule, a Python
// file, a server, a judge or a process reward model. Also scores items with it, and extracts
// answers for majority votes. A value type and functions.
#pragma once

#include "actors/reward/reward_calls.hpp"
#include "actors/reward/reward_source.hpp"
#include "apps/cli/flags.hpp"
#include "apps/session/reward_columns.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/team.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::session {

// The items of a flag that may be repeated, or hold several with commas between them.
std::vector<std::string> split_commas(const std::vector<std::string>& given);

struct RewardFlags {
  config::TrainConfig config;  // what the flags say is in its section `reward`

  // Appends flags that fill this object when they are parsed; it must live until then. The first
  // without --deadline.
  void add_sources_to(std::vector<cli::Flag>& flags);
  void add_to(std::vector<cli::Flag>& flags);
  // Those of a process reward model. `reduce_help`: the default, and the words to choose from.
  void add_process_to(std::vector<cli::Flag>& flags, std::string_view reduce_help);

  const auto& keys() const { return config.reward; }
  // How many of rule, file, servers and judge are given.
  int count() const {
    return !keys().rule.empty() + !keys().python.empty() + !keys().http.empty() + has_judge();
  }
  bool given() const { return count() > 0; }
  bool has_judge() const { return !keys().judge.empty(); }
  bool has_process() const { return !keys().process.model_name_or_path.empty(); }
  // Error (kConfig): an unknown rule or format, or a flag that is only read with another.
  core::Result<void> check() const;
  // Error (kConfig): a flag that is read with --judge alone, or a judge without a rubric.
  core::Result<void> check_judge() const;
  // Error kConfig: set without --process-model; the reduction is none of last, min, mean, product
  // and, with `steps`, steps.
  core::Result<void> check_process(bool steps) const;
  // Error (kConfig): the rule compares with a label, and `label_key` names no column for it.
  core::Result<void> check_label(const std::string& label_key) const;
  // Errors (kConfig): those of `check`; several or none given; a bad file, pattern or address.
  core::Result<std::unique_ptr<actors::reward::RewardCalls>> calls() const;
  // Like `calls`, for commands that score rows by batch. Also kConfig: the rows lack a column
  // that the Python function takes.
  core::Result<std::unique_ptr<actors::reward::RewardSource>> source(const RowColumns& rows) const;
  core::Duration deadline() const { return config::Seconds(keys().deadline_s); }

  // The configuration of the process reward model. `reduce`: where the flags do not say it.
  config::TrainConfig process_config(const char* reduce) const;

  // The settings that a file of scores depends on, with the identity of the Python file in place of
  // its name. Error: the Python file cannot be read.
  core::Result<std::vector<std::pair<std::string, std::string>>> settings() const;
  // Those of the process reward model; none without one.
  std::vector<std::pair<std::string, std::string>> process_settings() const;

 private:
  // Those of --rule code that differ from their defaults.
  std::vector<std::pair<std::string, std::string>> code_settings() const;
  core::Result<void> check_code() const;
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
