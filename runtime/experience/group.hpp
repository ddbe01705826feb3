// The experience of a run: trajectories (sampled responses), in groups of one prompt each. A
// generator makes a trajectory; rewards, reference and critic add to it; the policy learns from it.
// All of these roles use these types. Value types.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/experience/finish_reason.hpp"
#include "runtime/experience/ticket.hpp"
#include "runtime/experience/token_facts.hpp"
#include "runtime/experience/version_runs.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::experience {

// A reward that belongs to one token of a response: the score of the step that ends there,
// weighted.
struct StepReward {
  std::uint32_t token = 0;  // index in the response
  double reward = 0;
  friend bool operator==(const StepReward&, const StepReward&) = default;
};

// A turn of the policy in a dialogue: tokens that it did not draw, then those that it drew, up to
// the next turn.
struct Turn {
  std::uint32_t begin = 0;            // its first drawn token, an index in the sample's `tokens`
  std::vector<std::int32_t> context;  // the ids between the turn before and that token
  friend bool operator==(const Turn&, const Turn&) = default;
};

// What a fork has in common with another sample of its episode: its path (episodes.hpp) begins with
// the first `tokens` drawn tokens of the path of sample `sample`, a lower index in the group.
struct Shares {
  std::uint32_t sample = 0;
  std::uint32_t tokens = 0;  // at least 1
  friend bool operator==(const Shares&, const Shares&) = default;
};

// One sampled response, or one way through an episode of several turns. Lists are by token that the
// policy drew; those of reference and critic stay empty in a run without them. What the policy did
// not draw is in `turns` alone; row.hpp joins both for a forward pass. Each field has a row in
// sample_fields.hpp.
struct Trajectory {
  std::vector<std::int32_t> tokens;  // what was drawn, end tokens included
  std::vector<float> behaviour;      // log-prob when sampled: full vocabulary, at the temperature
  VersionRuns versions;              // of the weights that each token was sampled with
  TokenFacts facts;
  FinishReason finish = FinishReason::kEos;
  std::string text;               // the decoded tokens, for rewards and rollout files
  std::vector<float> reference;   // log-prob under the reference model
  std::vector<float> teacher;     // log-prob under the teacher of the prompt's domain
  std::vector<float> values;      // the critic's, at the start of the update
  std::optional<double> score;    // the rewards that score whole samples, as one; before shaping
  std::vector<StepReward> steps;  // by token; empty without a process reward model
  std::vector<Turn> turns;        // in order, the first begins with token 0; empty: one, no context
  // The episode's number in the group, from 1. Samples of an episode are adjacent. 0: it is
  // an episode of its own.
  std::uint32_t episode = 0;
  std::optional<Shares> shares;  // drawn tokens that it has as context, at the same places
  // What came with the episode, for the reward `feedback`: a score of the whole, and of turns, at
  // their last tokens.
  std::optional<double> feedback;
  std::vector<StepReward> feedback_steps;

  // The sum of the sample's score, if it has one, and the rewards of its steps.
  double total() const {
    double sum = score.value_or(0.0);
    for (const StepReward& step : steps)
      sum += step.reward;
    return sum;
  }

  bool truncated() const { return finish == FinishReason::kLength; }
};

// The samples of one prompt, which is what all of their rows begin with.
struct Group {
  Ticket ticket;
  std::vector<std::int32_t> prompt;
  std::vector<Trajectory> samples;
};

// The progress of a group: its ticket is issued, it is generated, then fully scored, or it failed.
enum class GroupState : std::uint8_t { kIssued, kGenerated, kReady, kFailed };
inline constexpr std::array<std::string_view, 4> kGroupStates = {"issued", "generated", "ready",
                                                                 "failed"};
constexpr std::string_view state_name(GroupState state) {
  return kGroupStates[static_cast<std::size_t>(state)];
}

// Checks a trajectory from a generator or an environment. Error kData: no tokens, log-probs or
// versions that are not one per token, turns that do not begin in order at its tokens, feedback
// that is no number or at none of them, or a field that only other roles may fill.
core::Result<void> check_delivered(const Trajectory& sample);

// Checks the turns alone.
core::Result<void> check_turns(const Trajectory& sample);

}  // namespace troupe::experience
