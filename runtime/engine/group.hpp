// A group inside the engine: its request, and for each sample its tokens so far, its KV blocks and
// how many positions are computed. Plain state, changed by the scheduler and the engine on one
// thread.
//
// Positions of a sample: the prompt holds 0 .. P-1, token j of the response P+j. The next token is
// drawn from the hidden state of the last position, so a sample of length L has keys and values for
// L-1 positions between two steps. The prompt's full blocks ("shared positions") are the same
// blocks in the table of every sample. The group counts how many of them are computed; each sample
// counts its own positions after them.
//
// If every layer of the model has a sliding window, a growing sample frees the blocks that lie
// before the window; kGoneBlock takes their places in `blocks`.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/engine/sample_guide.hpp"
#include "runtime/engine/token_counts.hpp"
#include "runtime/engine/types.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::engine {

inline constexpr std::int32_t kBlockTokens = static_cast<std::int32_t>(kernels::kKvBlock);

constexpr std::int32_t blocks_for(std::int64_t positions) {
  return static_cast<std::int32_t>((positions + kBlockTokens - 1) / kBlockTokens);
}

// Block counts for a sample's table when every layer of the model has a sliding window.
struct KvWindow {
  std::int32_t tokens = 0;     // to which a row attends, its own included; 0: all
  std::int32_t step_rows = 0;  // the most positions of a sample that one step computes

  constexpr bool any() const { return tokens > 0; }
  // How many of a sample's first blocks no row at `position` or later attends to.
  constexpr std::int32_t behind(std::int32_t position) const {
    return any() && position >= tokens ? (position + 1 - tokens) / kBlockTokens : 0;
  }
  // Length of the table of a sample with `length` tokens that is about to compute `position`,
  // including the places of blocks that were released.
  constexpr std::int32_t table(std::int32_t length, std::int32_t position) const {
    return blocks_for(any() ? std::min(length, position + step_rows) : length);
  }
  // The most blocks that a sample holds at once after its group has forked.
  constexpr std::int32_t held_max() const { return blocks_for(tokens + step_rows) + 1; }
};

// How many blocks a pool must have to admit the group and to finish any one of its samples alone.
constexpr std::int64_t blocks_wanted(std::int64_t prompt,
                                     std::int64_t samples,
                                     std::int64_t new_tokens,
                                     const KvWindow& window) {
  const std::int64_t shared = prompt / kBlockTokens;
  std::int64_t at_once = blocks_for(prompt + new_tokens - 1);
  if (window.any()) {
    const std::int64_t in_prompt = shared + blocks_for(window.step_rows);
    at_once = std::min(at_once, std::max<std::int64_t>(in_prompt, window.held_max()));
  }
  return std::max(shared + samples, at_once);
}

// Stands in a table for a block that was released.
inline constexpr std::int32_t kGoneBlock = -1;

enum class SampleStatus : std::uint8_t {
  kWaiting,    // holds no blocks; its prompt has not been computed yet
  kRunning,    // holds blocks for all positions (with a window: for those still attended to)
  kPreempted,  // lost its blocks, keeps its tokens
  kFinished,   // returned to the caller
};

// Names an entry of the prefix index: its block and a serial number that is used only once. The
// default value names the empty prefix, before the first block.
struct BlockEntry {
  std::int32_t block = -1;
  std::uint64_t serial = 0;
  bool found() const { return block >= 0; }
};

struct SampleState {
  Sample out;
  std::uint64_t seed = 0;
  SampleStatus status = SampleStatus::kWaiting;
  // Positions with keys and values; below the shared positions, only Group::shared_computed counts
  // (unless `alone`).
  std::int32_t computed = 0;
  std::vector<std::int32_t> blocks;  // blocks[i] holds positions 16i .. 16i+15; shared ones first
  std::int32_t behind = 0;           // how many of the first blocks were released (kGoneBlock)
  // Computes the shared positions by itself, since no other sample holds all their blocks any more.
  bool alone = false;
  // How many of the first blocks are in the prefix index, and the entry of the last of them.
  std::int32_t indexed = 0;
  BlockEntry entry;
  bool mixed = false;          // its blocks hold keys of several versions, so none may be indexed
  TokenCounts counts;          // of out.tokens, if a penalty needs them
  std::int32_t seated_at = 0;  // tokens it had when it last began or resumed
  std::shared_ptr<SampleGuide> guide;  // has taken out.tokens; null: any token may follow
};

struct Group {
  GroupRequest request;
  std::vector<SampleState> samples;
  std::vector<std::int32_t> end_tokens;  // ascending: a sample that draws one is finished
  // Distinct tokens of the prompt, ascending, if the repetition penalty needs them.
  std::vector<std::int32_t> prompt_tokens;
  bool forked = false;               // the prompt was computed; samples draw their own tokens
  std::int32_t shared_computed = 0;  // shared positions that are computed
  std::int32_t shared_planned = 0;   // shared positions computed after this step

  std::int32_t prompt_size() const { return static_cast<std::int32_t>(request.prompt.size()); }
  std::int32_t shared_blocks() const { return prompt_size() / kBlockTokens; }
  std::int32_t shared_positions() const { return shared_blocks() * kBlockTokens; }
  SampleState& at(std::int32_t index) { return samples[static_cast<std::size_t>(index)]; }
  const SampleState& at(std::int32_t index) const {
    return samples[static_cast<std::size_t>(index)];
  }
  // Tokens of prompt and response so far.
  std::int32_t length(const SampleState& sample) const {
    return prompt_size() + static_cast<std::int32_t>(sample.out.tokens.size());
  }
  // The first position of the sample that is neither computed nor in a slice of this step.
  std::int32_t next_position(const SampleState& sample) const {
    if (sample.alone) return sample.computed;
    if (shared_planned < shared_positions()) return shared_planned;
    return sample.computed > shared_positions() ? sample.computed : shared_positions();
  }
  std::int32_t token_at(const SampleState& sample, std::int32_t position) const {
    const std::int32_t prompt = prompt_size();
    return position < prompt ? request.prompt[static_cast<std::size_t>(position)]
                             : sample.out.tokens[static_cast<std::size_t>(position - prompt)];
  }
  // True if the sample can draw its next token after computing only its newest token.
  bool decodes(const SampleState& sample) const {
    return sample.status == SampleStatus::kRunning && forked &&
           shared_computed == shared_positions() && length(sample) - next_position(sample) == 1;
  }
  // True if rows of the prompt must deliver log-probs: only in sample 0, before the group forks.
  bool scores_prompt() const { return request.sampling.prompt_logprobs && !forked; }
  std::int32_t count(SampleStatus status) const {
    std::int32_t found = 0;
    for (const SampleState& sample : samples)
      found += sample.status == status ? 1 : 0;
    return found;
  }
};

using ActiveGroups = std::vector<std::unique_ptr<Group>>;  // by priority, then oldest first

}  // namespace troupe::engine
