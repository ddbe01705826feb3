// The experience of a run: trajectories (sampled responses), in groups of one prompt each. A
// generator makes a trajectory; rewards, reference and critic add to it; the policy learns from it.
// All of these roles use these types. Value types.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/experience/finish_reason.hpp"
#include "runtime/experience/ticket.hpp"
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

// One sampled response. Lists are by token; those of reference and critic stay empty in a run
// without them.
struct Trajectory {
  std::vector<std::int32_t> tokens;  // the response, its end token included
  std::vector<float> behaviour;      // log-prob when sampled: full vocabulary, at the temperature
  VersionRuns versions;              // of the weights that each token was sampled with
  FinishReason finish = FinishReason::kEos;
  std::string text;               // the decoded tokens, for rewards and rollout files
  std::vector<float> reference;   // log-prob under the reference model
  std::vector<float> teacher;     // log-prob under the teacher of the prompt's domain
  std::vector<float> values;      // the critic's, at the start of the update
  std::optional<double> score;    // the rewards that score whole samples, as one; before shaping
  std::vector<StepReward> steps;  // by token; empty without a process reward model

  // Its score, if it has one, and the rewards of its steps together.
  double total() const {
    double sum = score.value_or(0.0);
    for (const StepReward& step : steps)
      sum += step.reward;
    return sum;
  }

  bool truncated() const { return finish == FinishReason::kLength; }
};

// The samples of one prompt.
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

// Checks a trajectory from a generator. Error kData: no tokens, log-probs or versions that are not
// one per token, or a field that only other roles may fill.
core::Result<void> check_delivered(const Trajectory& sample);

}  // namespace troupe::experience
