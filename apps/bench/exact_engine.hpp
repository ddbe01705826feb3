// The engine's side of `troupe bench exact`: loads the model, generates in rounds under settings
// that must not change a log-prob (batch, rows of a step, threads, group size, prompt length,
// sampler, too few KV blocks, prompts that share their beginnings, and the events of
// exact_events.hpp), and checks the log-probs once more with the scorer without gradients. Runs on
// the caller's thread with the teams of exact_teams.hpp. Memory: packed weights twice, one engine,
// one micro-batch.
#pragma once

#include "apps/bench/exact_events.hpp"
#include "apps/bench/exact_parts.hpp"
#include "apps/bench/exact_teams.hpp"
#include "runtime/core/result.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace troupe::bench {

// Loads the model and packs two sets of weights in the team's memory: its own, and the same ones
// scaled. Error kData: the model's context is too short.
core::Result<TwoWeights> load_two_weights(const std::filesystem::path& folder,
                                          kernels::PanelDtype dtype,
                                          core::TeamRunner& team);

// The ranges and counts of conditions that the rounds actually covered. Range::add extends a range.
struct Coverage {
  struct Range {
    std::int64_t min = std::numeric_limits<std::int64_t>::max(), max = 0;
    void add(std::int64_t value) {
      min = std::min(min, value);
      max = std::max(max, value);
    }
  };
  Range batch;        // over the rounds: the most samples that ran at once
  Range step_tokens;  // over the rounds: the most rows that a step may have
  Range threads, samples_per_group, prompt_tokens, response_tokens;
  std::set<float> temperatures;
  std::uint64_t steps = 0, preempted = 0;
  std::uint64_t prefix_hit_tokens = 0, evicted_blocks = 0, chunked_prompts = 0;
  std::map<std::string, std::uint64_t> events;  // how often each event happened, by name
};

struct EngineSide {
  Transcript transcript;
  Coverage coverage;
  Difference scorer;  // between the engine's log-probs and the scorer's
  std::int64_t rounds = 0;
  double engine_s = 0, scorer_s = 0;
  std::string isa;  // of the kernels
};

// `tokens`: response tokens to sample, over all rounds.
core::Result<EngineSide> run_engine_side(const std::filesystem::path& model,
                                         const ExactPlace& place,
                                         std::int64_t tokens,
                                         std::uint64_t seed);

}  // namespace troupe::bench
