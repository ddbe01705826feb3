// What a run does about an error that a living role answers with: the one place that decides it.
// The table in docs/operations.md says the same, and a test compares them. Pure functions.
#pragma once

#include "runtime/core/error.hpp"

#include <array>
#include <string_view>

namespace troupe::actors {

// What was asked for when the error came.
enum class AskedFor {
  kSamples,  // a ticket, of a generator
  kWeights,  // to take new weights, of a generator
  kScores,   // of a reward or the reference model
  kUpdate,   // to learn from an update, of policy or critic
  kFiles,    // to write down an update or a checkpoint
};

enum class Reaction {
  kElsewhere,  // another does it, or the same one again; several in a row restart the role
  kRestarted,  // the same, and the role is started again at once
  kAgain,      // it is asked again after a pause, for as long as the answer is wanted
  kReplaced,   // the group fails, and another prompt takes its place
  kResumed,    // another session goes on from the last checkpoint; three times for one update
  kPaused,     // the run waits until it works
  kEnded,      // the run ends, after a checkpoint if there is anything to save
};
inline constexpr std::array<std::string_view, 7> kReactions = {
    "elsewhere", "restarted", "again", "replaced", "resumed", "paused", "ended"};

// True for the end of a role, its process or the link to it: no answer of a living role.
constexpr bool is_loss(core::ErrorCode code) {
  return code == core::ErrorCode::kPeerLost || code == core::ErrorCode::kClosed;
}

// True for errors of the role itself rather than of what it was asked for: memory, a device, a bug,
// no answer in time.
constexpr bool is_ailment(core::ErrorCode code) {
  return code == core::ErrorCode::kResources || code == core::ErrorCode::kInternal ||
         code == core::ErrorCode::kDeadline || code == core::ErrorCode::kInterrupted;
}

constexpr Reaction reaction_to(AskedFor asked, core::ErrorCode code) {
  using core::ErrorCode;
  switch (asked) {
    case AskedFor::kSamples:
      if (code == ErrorCode::kOverloaded) return Reaction::kAgain;
      // Log-probs that are not finite say more of the engine than of the prompt.
      if (is_loss(code) || is_ailment(code) || code == ErrorCode::kNumeric)
        return Reaction::kRestarted;
      return Reaction::kElsewhere;
    case AskedFor::kWeights:
      if (is_loss(code)) return Reaction::kRestarted;
      if (code == ErrorCode::kDeadline || code == ErrorCode::kOverloaded) return Reaction::kAgain;
      return Reaction::kElsewhere;
    case AskedFor::kScores:
      if (is_loss(code) || code == ErrorCode::kOverloaded) return Reaction::kAgain;
      return Reaction::kReplaced;
    case AskedFor::kUpdate:
      // A loss that is no number, or data that cannot be learned from, would only come again.
      if (is_loss(code) || is_ailment(code) || code == ErrorCode::kOverloaded)
        return Reaction::kResumed;
      return Reaction::kEnded;
    case AskedFor::kFiles:
      if (is_loss(code)) return Reaction::kResumed;
      return code == ErrorCode::kDiskFull ? Reaction::kPaused : Reaction::kEnded;
  }
  return Reaction::kEnded;
}

}  // namespace troupe::actors
