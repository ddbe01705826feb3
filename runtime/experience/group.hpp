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

// One sampled response. Lists are by token; those of reference and critic stay empty in a run
// without them.
struct Trajectory {
  std::vector<std::int32_t> tokens;  // the response, its end token included
  std::vector<float> behaviour;      // log-prob when sampled: full vocabulary, at the temperature
  VersionRuns versions;              // of the weights that each token was sampled with
  FinishReason finish = FinishReason::kEos;
  std::string text;              // the decoded tokens, for rewards and rollout files
  std::vector<float> reference;  // log-prob under the reference model
  std::vector<float> teacher;    // log-prob under the teacher of the prompt's domain
  std::vector<float> values;     // the critic's, at the start of the update
  std::optional<double> score;   // weighted sum of the rewards, before shaping

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
