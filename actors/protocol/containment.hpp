// Decides how a run reacts to the error of a role, by what the role was asked for. The table in
// docs/operations.md says the same, and a test compares the two. Pure functions.
#pragma once

#include "runtime/core/error.hpp"

#include <array>
#include <string_view>

namespace troupe::actors {

// The request that failed.
enum class AskedFor {
  kSamples,  // a generator was to sample a ticket
  kWeights,  // a generator was to take new weights
  kScores,   // a reward or the reference model was to score a group
  kUpdate,   // policy or critic was to learn from an update
  kFiles,    // a role was to write down an update or a checkpoint
};

enum class Reaction {
  kElsewhere,  // another role does it, or the same one again; several in a row restart the role
  kRestarted,  // like kElsewhere, but the role restarts at once
  kAgain,      // the role is asked again after a pause, for as long as the answer is wanted
  kReplaced,   // the group fails, and another prompt takes its place
  kResumed,    // another session goes on from the last checkpoint, until the same update has failed
               // kUpdateFailures_max times
  kPaused,     // the run waits until it works
  kEnded,      // the run ends, after a checkpoint if there is anything to save
};
inline constexpr std::array<std::string_view, 7> kReactions = {
    "elsewhere", "restarted", "again", "replaced", "resumed", "paused", "ended"};

// True when the role, its process or the link to it has ended: no living role answered.
constexpr bool is_loss(core::ErrorCode code) {
  return code == core::ErrorCode::kPeerLost || code == core::ErrorCode::kClosed;
}

// True for errors that lie in the role rather than in the request: memory, a device, a bug, no
// answer in time.
constexpr bool is_ailment(core::ErrorCode code) {
  return code == core::ErrorCode::kResources || code == core::ErrorCode::kInternal ||
         code == core::ErrorCode::kDeadline || code == core::ErrorCode::kInterrupted;
}

constexpr Reaction reaction_to(AskedFor asked, core::ErrorCode code) {
  using core::ErrorCode;
  switch (asked) {
    case AskedFor::kSamples:
      if (code == ErrorCode::kOverloaded) return Reaction::kAgain;
      // kNumeric: log-probs that are not finite point to the engine, not to the prompt; those of a
      // fresh one to the weights (numeric_faults.hpp).
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
      // Any other error, such as a NaN loss or bad data, would only come again.
      if (is_loss(code) || is_ailment(code) || code == ErrorCode::kOverloaded)
        return Reaction::kResumed;
      return Reaction::kEnded;
    case AskedFor::kFiles:
      if (is_loss(code)) return Reaction::kResumed;
      return code == ErrorCode::kNoRoom ? Reaction::kPaused : Reaction::kEnded;
  }
  return Reaction::kEnded;
}

}  // namespace troupe::actors
