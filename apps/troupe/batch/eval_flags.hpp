// What `troupe eval` does with pairs and with two models, and the flags that both read.
#pragma once

#include "apps/cli/engine_host.hpp"
#include "apps/cli/sampling_flags.hpp"
#include "apps/session/reward_flags.hpp"
#include "apps/troupe/batch/prompt_flags.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

struct PairFlags {
  std::string model, chosen = "chosen", rejected = "rejected";  // reward model; columns of answers

  // Appends the flags that fill this object, which must outlive their parsing.
  void add_to(std::vector<cli::Flag>& flags);
};

struct EvalFlags {
  std::vector<std::string> sides;  // two: models, run folders, or .jsonl files of responses
  std::string response_key = "response";
  std::string source_key = "datasource";  // column that names sets of rows
  std::string out;                        // .jsonl file of rows with scores; empty: none
  std::int64_t samples = 1;               // of each prompt
  bool json = false;                      // print figures as one JSON object, else as a table
  PairFlags pairs;                        // its reward model replaces `reward`
  PromptFlags prompts;
  session::RewardFlags reward;
  cli::Placement placement;
  cli::EngineFlags engine;
  cli::SamplingFlags sampling;
};

// `troupe eval --compare A B`: which of two models answers better, by a judge or another reward.
// Samples what is not there already, scores both responses to a prompt as one group, and prints win
// rates with standard error and mean lengths, over all pairs and for each source. Errors: kConfig
// for flags that do not fit; kData for responses that do not belong to the prompts, or not the same
// number of them to each prompt.
Result<void> compare_models(const EvalFlags& flags);

// Measures how often a reward model, a judge or another reward scores the better answer of a pair
// above the worse one: over all pairs, and for each set that a column names. Prints accuracy (equal
// scores count a half) and mean margin with 95 % bootstrap intervals. Both answers are one group.
// Pairs without a score are counted and left out. Errors: kData, with file:line, for a row that
// lacks the columns; when no pair has scores, or one has none from a reward model; those of the
// reward and of writing `out`.
Result<void> print_pair_accuracy(const EvalFlags& flags);

}  // namespace troupe::app
