// The input of a reward (the responses to one prompt, with the data that they share), which parts
// of it a reward reads, and the scores of steps. Sent to the reward role, which passes it to its
// source. Value types and pure functions.
#pragma once

#include "runtime/core/result.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

struct RewardSample {
  std::string response;                   // text of the sampled tokens, special ones left out
  std::vector<std::int32_t> tokens = {};  // sampled ids, where the reward reads them
};

struct RewardGroup {
  std::string prompt;      // as the model saw it
  std::string label{};     // the dataset's label column, "" when there is none
  std::string columns{};   // the dataset row as one JSON object, at least the columns that are read
  std::string messages{};  // the prompt as a JSON list of messages; "" where the dataset has a text
  std::uint64_t update = 0;  // of the run, counted from 0
  std::vector<RewardSample> samples{};
};

// One step of a response, as a process reward model sees it.
struct StepScore {
  std::uint32_t end = 0;  // bytes of the response's text up to the end of the step
  double score = 0;
  // Error kData: the score is not finite.
  core::Result<void> check() const {
    if (std::isfinite(score)) return {};
    return core::fail(core::ErrorCode::kData, "the score of a step is not a finite number");
  }
  friend bool operator==(const StepScore&, const StepScore&) = default;
};

inline std::size_t samples_in(const std::vector<RewardGroup>& groups) {
  std::size_t count = 0;
  for (const RewardGroup& group : groups)
    count += group.samples.size();
  return count;
}

// What a reward reads besides prompt, response and label. Only this is sent, since rows can be long
// (the tests of a coding task).
struct RewardReads {
  bool all_columns = false;          // of the dataset row
  std::vector<std::string> columns;  // the columns, unless all_columns
  bool messages = false;             // the prompt as a list of messages
  bool tokens = false;               // the sampled ids

  bool cover(const RewardReads& wanted) const;  // includes all of `wanted`
  // "all columns", "nothing" or "columns tests, level; messages; tokens".
  std::string text() const;
  friend bool operator==(const RewardReads&, const RewardReads&) = default;
};

// The row reduced to the columns that are read and that it has. Both are JSON objects; with
// `all_columns` the row's text is returned unchanged.
std::string row_with(const std::string& row, const RewardReads& reads);

}  // namespace troupe::actors
