// A rubric says what a judge is asked about a response and how its answer is read: a YAML file,
// docs/write_a_reward.md. Pure; any thread.
#pragma once

#include "actors/protocol/reward_group.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <optional>
#include <regex>
#include <string>

namespace troupe::actors::reward {

enum class RubricKind {
  kPointwise,  // a number for each response
  kPairwise,   // which of two responses of a group is better
  kReference,  // whether a response or the row's label is better
};

// The texts of one question. `label` is the row's; of a comparison `first` and `second` are the two
// answers in the order in which the judge sees them, else `first` is the response.
struct RubricTexts {
  std::string prompt, label, first, second;
};

struct Rubric {
  RubricKind kind = RubricKind::kPointwise;
  std::string system;  // empty: no such message
  std::string prompt;  // with {prompt}, {label}, and {response} or {response_a} and {response_b}
  std::regex pattern;
  double low = 0, high = 0;        // the numbers that count (pointwise)
  double temperature = 0;          // of the first try
  double retry_temperature = 0.7;  // of the others
  std::int64_t max_tokens = 512;
  std::int64_t tries = 3;      // tries of a question whose answer does not parse
  std::int64_t opponents = 0;  // pairwise: each response meets that many others; 0: all
  std::int64_t seed = 0;       // of the first try; +1 for each further try

  // The question, each placeholder replaced once: what is in the texts stays as it is.
  std::string ask(const RubricTexts& texts) const;
  // What the last match of the pattern says; nullopt: there is none, or none that counts.
  std::optional<double> number(const std::string& answer) const;
  // 1 when the first answer is better, 0 for the second, 0.5 for neither.
  std::optional<double> verdict(const std::string& answer) const;
};

// Reads a rubric; `where` is the file's name in messages. Errors (kConfig): no such key, a value
// out of range, a template without the placeholders of its kind or with others, a pattern that is
// no regular expression.
core::Result<Rubric> parse_rubric(const std::string& text, const std::string& where);
// Error (kConfig) too when the file cannot be read.
core::Result<Rubric> read_rubric(const std::string& file);

// The prompt as a reader sees it: of a list of messages their texts, else the group's prompt.
std::string plain_prompt(const RewardGroup& group);

}  // namespace troupe::actors::reward
