// Requests, samples, limits and counters of a generation engine: value types, shared by the engine
// and its callers.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/experience/finish_reason.hpp"
#include "runtime/experience/token_facts.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::engine {

class TokenGuide;

// Added to the logit of a token before the temperature.
struct LogitBias {
  std::int32_t token = 0;
  float bias = 0.0f;
};

// A token and its log-prob at temperature 1.
struct TokenLogprob {
  std::int32_t token = 0;
  float logprob = 0.0f;
};

struct SamplingParams {
  float temperature = 1.0f;  // 0 = greedy; log-probs are then those at temperature 1
  std::int32_t top_k = 0;    // 0 = off
  float top_p = 1.0f;        // 1 = off
  float min_p = 0.0f;        // 0 = off
  std::int32_t max_new_tokens = 16;
  std::int32_t min_new_tokens = 0;  // before it, neither end tokens nor stop strings end a sample
  bool ignore_eos = false;          // the model's end tokens do not end a sample
  std::vector<std::int32_t> stop_tokens;  // in addition to the model's end tokens
  std::vector<std::string>
      stop_strings;  // checked on the decoded text; the match is kept in tokens
  // Changes of the logits before the temperature; reported log-probs are those without them. The
  // repetition penalty divides positive and multiplies negative logits of tokens in the prompt or
  // the response. For tokens of the response, the presence penalty is subtracted once, the
  // frequency penalty once per occurrence (OpenAI's definition).
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::vector<LogitBias> logit_bias;  // ascending ids
  // What each sample returns besides its tokens.
  bool entropies = false;         // of the full distribution at temperature
  bool raw_logprobs = false;      // log-probs at temperature 1 too
  std::int32_t top_logprobs = 0;  // how many most likely tokens per position, at temperature 1
  bool prompt_logprobs = false;   // log-probs of the prompt's own tokens, at temperature 1
  bool routed_experts = false;    // the experts that each token's row chose (mixture of experts)
  bool kept_mass = false;         // how much probability truncation and a guide left

  bool truncates() const { return top_k > 0 || top_p < 1.0f || min_p > 0.0f; }
};

// n samples of one prompt. Sample i draws from seed derive_seed(seed, i); its tokens depend on the
// weights, the prompt, the parameters and that seed alone, never on what else is in the batch.
struct GroupRequest {
  core::GroupId id;
  std::vector<std::int32_t> prompt;  // at least one token, ids in the vocabulary
  std::int32_t samples = 1;
  std::uint64_t seed = 0;
  std::uint64_t cache_salt = 0;  // keys and values are shared only with groups of the same salt
  std::int32_t priority = 0;     // groups with a smaller one go first
  SamplingParams sampling;
  // The guide of each sample at its start; null: any token may follow. Only its const functions are
  // called.
  std::shared_ptr<const TokenGuide> guide = nullptr;
  // Whose it is. Where groups of several owners wait, the one whose owner computes least goes
  // first, and takes from the owner that has most. 0: no owner's.
  std::uint32_t owner = 0;
};

using experience::finish_name;
using experience::FinishReason;

struct Sample {
  core::GroupId group;
  std::int32_t index = 0;               // within its group
  std::vector<std::int32_t> tokens;     // the response, end token included
  std::vector<float> logprobs;          // full vocabulary, at temperature (1 when greedy)
  std::vector<core::Version> versions;  // of the weights that computed each token's distribution
  std::vector<float> raw_logprobs;      // full vocabulary, at temperature 1; empty when not asked
  std::vector<float> entropies;         // nats; empty when not asked
  std::vector<TokenLogprob> top_logprobs;  // [tokens][top_logprobs], most likely first
  // [tokens][layers of experts][experts per token]: the experts, ascending, that were chosen by the
  // row that predicted the token. Empty when not asked.
  std::vector<std::uint16_t> routed_experts;
  // Log-probs of the prompt's tokens 1 .. P-1, at temperature 1. Only in sample 0; empty when not
  // asked.
  std::vector<float> prompt_logprobs;
  std::vector<TokenLogprob> prompt_top_logprobs;  // [P-1][top_logprobs]
  experience::TokenFacts facts;                   // empty when not asked
  std::string guide_error;  // why the guide ended the sample (kAborted); empty: it did not
  FinishReason finish = FinishReason::kLength;
};

// What a swap to new weights does with the keys and values of running samples.
enum class KvAction : std::uint8_t { kRecompute, kKeep };

// What a pause does with unfinished samples: ends and returns them (kAbort), keeps them with their
// keys and values (kKeep), or keeps only their tokens and recomputes the rest after `resume`
// (kRecompute).
enum class PauseMode : std::uint8_t { kAbort, kKeep, kRecompute };

// The parts that an engine can release for a while: its reference to the weights, its KV memory.
struct SleepParts {
  bool weights = false;
  bool kv = false;
};

// Bytes that the engine holds before and after `sleep` or `wake`: packed weights, and memory for KV
// blocks.
struct MemoryReport {
  struct Part {
    std::uint64_t before = 0;
    std::uint64_t after = 0;
  };
  Part weights, kv;
  // The engine released the weights, but other owners hold them, so their memory is not freed.
  bool weights_held_elsewhere = false;
};

// kAwaited: `wake` was called, `set_weights` not yet.
enum class WeightsState : std::uint8_t { kAwake, kAsleep, kAwaited };

struct EngineState {
  WeightsState weights = WeightsState::kAwake;
  bool kv_asleep = false;
  bool paused = false;
  // True if no part sleeps, so that the engine accepts groups and (unless paused) computes steps.
  bool awake() const { return weights == WeightsState::kAwake && !kv_asleep; }
};

// Memory that a key counts in GiB.
struct Gibibytes {
  Gibibytes(double count) : bytes(static_cast<std::uint64_t>(count * (1 << 30))) {}
  std::uint64_t bytes;
};

struct EngineLimits {
#define KEYS "runtime/engine/engine_keys.def"
#include "runtime/config/fill.def"
  std::int32_t context = 0;    // 0 = the model's
  std::int64_t kv_blocks = 0;  // 0 = from kv_cache_gb
};

struct EngineCounters {
  std::uint64_t steps = 0, prefill_tokens = 0, decode_tokens = 0, finished = 0, aborted = 0,
                preempted = 0;
  std::uint64_t replayed = 0;  // replays of recorded decode steps on a device
  // Tokens of prompts and resumed samples that were looked up in the prefix index; those whose keys
  // and values were found; blocks that lost their entry because they were needed for other tokens.
  std::uint64_t prefix_query_tokens = 0, prefix_hit_tokens = 0, evicted = 0;
  // waiting_sequences counts unfinished samples that hold no blocks: those of waiting groups, and
  // those that lost theirs (preemption, a pause, a sleep, new weights) and will resume.
  // free_blocks counts all blocks that no sample holds, cached ones included; cached_blocks counts
  // all blocks in the prefix index.
  std::int64_t waiting_groups = 0, waiting_sequences = 0, running_sequences = 0, free_blocks = 0,
               total_blocks = 0, cached_blocks = 0;
};

}  // namespace troupe::engine
