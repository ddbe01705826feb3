// `troupe eval --compare A B`: which of two models answers better, by a judge or another reward.
#pragma once

#include "apps/cli/engine_host.hpp"
#include "apps/cli/sampling_flags.hpp"
#include "apps/session/reward_flags.hpp"
#include "apps/troupe/batch/prompt_flags.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::app {

struct CompareOptions {
  std::vector<std::string> sides;  // two: models, run folders, or .jsonl files of responses
  std::string response_key = "response";
  std::string reward_model;  // in place of the flags of `reward`
  std::string source_key, out;
  std::int64_t samples = 1;  // of each prompt
  bool json = false;
};

// Samples what is not there already, scores both responses to a prompt as one group, and prints win
// rates with standard error and mean lengths, over all pairs and for each source. Errors: kConfig
// for flags that do not fit; kData for responses that do not belong to the prompts, or not the same
// number of them to each prompt.
core::Result<void> compare_models(const CompareOptions& options,
                                  const PromptFlags& prompts,
                                  const RewardFlags& reward,
                                  const Placement& placement,
                                  const EngineFlags& engine,
                                  const SamplingFlags& sampling);

}  // namespace troupe::app
