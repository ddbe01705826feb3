// The interface through which a run reports what it does; RunReporter writes it to the run folder
// and the terminal. Called on the controller's strand unless a function says otherwise; an error
// ends the run. It also hands out checkpoint folders: the roles write into them, the listener
// decides where they are and when a checkpoint is valid.
#pragma once

#include "actors/controller/run_plan.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors::controller {

using Metrics = std::vector<std::pair<std::string, double>>;

struct UpdateReport {
  std::uint64_t done = 0;  // updates done, this one included
  Metrics metrics;         // the policy's, then reward/, response/, async/, time/ and perf/
};

// The problems of one set of held-out prompts.
struct EvaluatedSet {
  std::string name{};              // "" for that of eval.dataset
  std::vector<double> accuracy{};  // mean score of each problem that has one, in their order
  std::uint64_t missing = 0;       // problems that could not be scored
};

struct EvaluationReport {
  std::uint64_t done = 0;  // updates done when it was made
  bool greedy = false;
  std::vector<EvaluatedSet> sets;  // at least one
  double seconds = 0;
};

// A report about a group that cannot be learned from.
struct FailedGroup {
  experience::Ticket ticket;
  std::string cause;             // may have several lines, as a traceback has
  std::uint32_t fault = 1;       // how many failures of its slot, this one included
  std::uint32_t faults_max = 1;  // the run ends at this many
};

class RunListener {
 public:
  virtual ~RunListener() = default;
  // A phase begins ("generate", "train", ...); the one before it ends.
  virtual void on_phase(const std::string& phase) = 0;
  // A group that cannot be learned from; another prompt takes its place.
  virtual void on_failed_group(const FailedGroup& group) = 0;
  // A role came up, or was lost for `cause`. Tickets of a lost generator are sampled elsewhere.
  virtual void on_peer(const std::string& /*name*/, bool /*up*/, const std::string& /*cause*/) {}
  // Policy or critic failed in an update; the next session's plan gets this.
  virtual void on_failed_update(const FailedUpdate& /*failed*/) {}
  // Anything else the user should know: a scorer that is away, samples without a score, a generator
  // that is tried again. Called on the strand of the role that reports it.
  virtual void on_note(const std::string& /*text*/) {}
  // This set, which names no lost rewards, scores the groups of `from_update` and later updates.
  virtual void on_rewards(const SetRewards& /*set*/) {}
  // The resumed run waits for these rewards, which were attached when it was saved.
  virtual void on_awaited_rewards(const std::set<std::string>& /*names*/) {}
  // While the run waits for groups, at each change; on the strand of data/0.
  virtual void on_groups(const GroupCounts& /*counts*/) {}
  virtual core::Result<void> on_update(const UpdateReport& report) = 0;
  virtual core::Result<void> on_evaluation(const EvaluationReport& report) = 0;
  // Figures measured after `done` updates, and the line that shows them to the user.
  virtual core::Result<void> on_figures(std::uint64_t /*done*/,
                                        const Metrics& /*figures*/,
                                        const std::string& /*line*/) {
    return {};
  }
  // `begin_checkpoint` returns the folder that the roles write the checkpoint of `done` updates
  // into; `commit_checkpoint` makes it valid and returns its final place. A commit hashes all
  // files, so it is a coroutine that does not block the strand.
  virtual core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t done) = 0;
  virtual async::task<core::Result<std::filesystem::path>> commit_checkpoint(
      std::uint64_t done) = 0;
  // The weights after `updates` updates give numbers that are not finite: no later session begins
  // with a checkpoint of them. Gives the last one before; "": there is none.
  virtual std::string on_diverged(std::uint64_t /*updates*/) { return {}; }
  // True when the evaluation after `done` updates was the best so far: a checkpoint is made then,
  // with the model next to it.
  virtual bool is_best(std::uint64_t /*done*/) const { return false; }
  // True when the experience log of the updates up to `done` is as long as it may be, or was lost,
  // or the newest checkpoint: one is made then.
  virtual bool log_is_long(std::uint64_t /*done*/) { return false; }
  // Error: the run folder is gone; a checkpoint that begins afterwards is written elsewhere.
  virtual core::Result<void> check_place() const { return {}; }
  // True once the user asked to stop.
  virtual bool stop_requested() const = 0;
  // When the work of the run must be over, if the stop that was asked for has a limit.
  virtual std::optional<core::TimePoint> stop_deadline() const { return {}; }
  // The run ends early, to keep that limit. `said`: what is kept, and what is done again.
  virtual void on_given_up(const std::string& /*said*/) {}
};

}  // namespace troupe::actors::controller
