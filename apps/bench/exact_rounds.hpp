// The engine's side of `troupe bench exact`: rounds of generation under settings that must not
// change a log-prob (batch, rows of a step, threads, group size, prompt length, sampler, too few KV
// blocks, prompts that share their beginnings, and the events of exact_events.hpp). Runs on the
// caller's thread and the teams it is given; memory: one engine at a time.
#pragma once

#include "apps/bench/exact_transcript.hpp"
#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/model/packed.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::app {

struct Round {
  std::int32_t batch = 1;        // samples that run at once
  std::int32_t step_tokens = 1;  // rows of one step, so the longest chunk of a prompt
  std::int32_t threads = 1;
  std::int32_t samples_max = 1;  // of a group: 1 .. samples_max
  std::int32_t prompt_min = 1, prompt_max = 1;
  engine::SamplingParams sampling;  // max_new_tokens is set group by group
  bool scarce_blocks = false;       // KV blocks for about half of what the batch grows to
  std::int32_t event_tokens = 0;    // something happens every so many tokens drawn; 0 = never
  bool shared_prefixes = false;     // prompts begin like others
  std::int64_t weight = 1;          // share of the tokens
};

std::span<const Round> exact_rounds();

// The tokens of each round, adding up to `tokens`.
std::vector<std::int64_t> share_tokens(std::span<const Round> rounds, std::int64_t tokens);

// What was really seen; `add` merges.
struct Coverage {
  struct Range {
    std::int64_t min = 0, max = 0;
    bool empty = true;
    void add(std::int64_t value);
  };
  Range batch;        // most samples running at once, by round
  Range step_tokens;  // rows that a step may have
  Range threads, samples_per_group, prompt_tokens, response_tokens;
  std::vector<float> temperatures;  // ascending
  std::uint64_t steps = 0, preempted = 0;
  std::uint64_t prefix_hit_tokens = 0, evicted_blocks = 0, chunked_prompts = 0;
  std::map<std::string, std::uint64_t> events;  // how often each happened
};

struct RoundInputs {
  std::shared_ptr<const model::PackedWeights> weights;
  std::shared_ptr<const model::PackedWeights> other;  // of the same model, with other numbers
  core::TeamRunner& team;                             // of round.threads members
  std::uint64_t seed = 0;                             // of this round
  std::int64_t tokens = 0;
};

// Samples exactly `inputs.tokens` response tokens, adds its groups to `transcript`.
core::Result<void> run_round(const Round& round,
                             const RoundInputs& inputs,
                             Transcript& transcript,
                             Coverage& coverage);

}  // namespace troupe::app
