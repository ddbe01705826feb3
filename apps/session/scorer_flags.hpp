// Flags that several commands share: the limits of the rule `code` (score, eval, attach reward),
// and what a process reward model reads (score, attach reward). Value types that fill a
// configuration.
#pragma once

#include "apps/cli/flags.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::session {

// The items of a flag that may be repeated, or hold several with commas between them.
std::vector<std::string> split_commas(const std::vector<std::string>& given);

// The rules by name, for help and errors.
inline constexpr const char* kRuleNames = "exact, last_number, regex, math or code";

// Error kConfig: there is no such rule.
core::Result<void> check_rule(const std::string& rule);
// Whether the rule compares with a label, so that it needs one.
bool compares_label(const std::string& rule);

struct CodeFlags {
  double timeout_s = 10;
  std::int64_t memory_mb = 512;
  std::string score = "share";

  void add_to(std::vector<cli::Flag>& flags);
  // Error kConfig: set with another rule, or an unknown score.
  core::Result<void> check(const std::string& rule) const;
  void fill(config::TrainConfig& config) const;
  // The flags that differ from their defaults, as settings of a PartFile.
  std::vector<std::pair<std::string, std::string>> settings() const;
};

struct ProcessFlags {
  std::string model, reduce, placeholder, separator;
  std::vector<std::string> reward_tokens;

  // `reduce`: the default, and the words to choose from.
  void add_to(std::vector<cli::Flag>& flags, std::string_view reduce_help);
  // Error kConfig: set without --process-model; `reduce` is none of last, min, mean, product and,
  // with `steps`, steps.
  core::Result<void> check(bool steps) const;
  void fill(config::TrainConfig& config) const;
  std::vector<std::pair<std::string, std::string>> settings() const;

 private:
  bool read_alone() const {
    return !placeholder.empty() || !separator.empty() || !reward_tokens.empty();
  }
};

}  // namespace troupe::session
