// Where episodes happen: what takes the policy's turns and answers them. An environment may host
// many episodes at a time. Implementations are made by the role loader and used on the strand of
// the environment role; every call is bounded by a deadline of the caller's scope.
#pragma once

#include "actors/protocol/role_shell.hpp"
#include "runtime/async/deadline.hpp"
#include "runtime/async/task.hpp"
#include "runtime/config/key_types.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/role_report.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe::actors::environment {

using config::Int, config::Text;  // of rows of keys

// The start of an episode: all episodes of a group start from the same one.
struct EpisodeStart {
  std::string prompt;      // of the dataset's row, as text
  std::string messages;    // JSON list of chat messages; empty where the row has none
  std::string label;       // "" when there is none
  std::string columns;     // the whole row as JSON
  std::uint64_t seed = 0;  // of the group: environments that draw their start draw it from this
  std::uint64_t row = 0;   // its number in the dataset
  // How often what ran this episode has ended, perhaps because of it (kClosed). The environment
  // then runs it among fewer others, at last alone.
  std::uint32_t losses = 0;
};

// What the environment says to the policy. Bound: kObservation_bytes_max.
struct EnvironmentTurn {
  // At most one of the two. `messages`: a JSON list of chat messages that go on the dialogue (of
  // role system, user or tool; in an opening also assistant). `text`: goes on the token stream as
  // it is, without a template.
  std::string messages;
  std::string text;
  std::string tools;             // JSON list of tools; only of an opening
  std::optional<double> reward;  // of the turn that this answers
  std::optional<double> score;   // of the whole episode; the last that was said counts
  bool done = false;             // the policy gets no further turn
  std::string extras;            // JSON object of numbers for metrics; empty: none
};

// What the policy did in a turn.
struct PolicyTurn {
  std::string text;     // as decoded, calls of tools included
  std::string message;  // JSON object: the assistant's message, its calls of tools parsed
  bool cut = false;     // the response ended at its length limit
};

// One episode. Ends when destroyed; that frees what it holds without waiting.
class Episode {
 public:
  virtual ~Episode() = default;
  // Errors: kData (the environment raised an error) and kDeadline (it did not answer in time) cost
  // this episode. kInterrupted: its worker was ended because of another episode; it is to be run
  // again. kClosed: its worker ended, and this episode may be the cause; it is to be run again
  // with one more of EpisodeStart::losses. After an error the episode is over.
  virtual async::task<core::Result<EnvironmentTurn>> step(PolicyTurn turn,
                                                          async::Deadline deadline) = 0;
  // A limit ended the episode before the environment did: what its score is, if there is one. Not
  // called after a turn that was `done`.
  virtual async::task<core::Result<EnvironmentTurn>> finish(async::Deadline) {
    EnvironmentTurn none;
    none.done = true;
    co_return none;
  }
};

struct OpenedEpisode {
  std::unique_ptr<Episode> episode;
  // What replaces the row's prompt. Without text and messages the row's own prompt is
  // what the policy sees.
  EnvironmentTurn opening;
};

class Environment {
 public:
  virtual ~Environment() = default;
  // Called once, before the first `open`, with what it runs on: scope, timers, device queue. Its
  // episodes end before it does.
  virtual void begin(const RoleContext& context) = 0;
  // Waits for room as long as it takes; `deadline` is for the answer. Errors: as of `step`;
  // kPeerLost (nothing can run it), kOverloaded (no more episodes at a time).
  virtual async::task<core::Result<OpenedEpisode>> open(EpisodeStart start,
                                                        async::Deadline deadline) = 0;
  virtual std::string name() const = 0;  // for messages: "the environment tools.py"
  // As RewardCalls::take_modules.
  virtual std::string take_modules() { return {}; }
  // Counts for `status`.
  virtual wire::Amounts amounts() const { return {}; }
};

}  // namespace troupe::actors::environment
