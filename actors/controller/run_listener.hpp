// Who hears what a run does: the run folder's files and the terminal in practice. Called on the
// controller's strand, but for `on_groups`; an error ends the run. Checkpoints are asked for
// through it too, because the roles write them but the run folder decides where they stand and when
// they count.
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

using Metrics = std::vector<std::pair<std::string, double>>;

struct UpdateReport {
  std::uint64_t done = 0;  // updates done, this one included
  Metrics metrics;         // policy's own, then reward/, response/, time/ and perf/
};

struct EvaluationReport {
  std::uint64_t done = 0;  // updates done when it was made
  bool greedy = false;
  std::vector<double> accuracy;  // mean score of each problem that has one, in their order
  std::uint64_t missing = 0;     // problems that could not be scored
  double seconds = 0;
};

// A group that cannot be learned from, as people are told of it.
struct FailedGroup {
  experience::Ticket ticket;
  std::string cause;             // may have several lines, as a traceback has
  std::uint32_t fault = 1;       // of its slot, counted from 1
  std::uint32_t faults_max = 1;  // with so many the run ends
};

class RunListener {
 public:
  virtual ~RunListener() = default;
  // A phase begins ("generate", "train", ...); the one before it ends.
  virtual void on_phase(const std::string& phase) = 0;
  // A group that cannot be learned from; another prompt takes its place.
  virtual void on_failed_group(const FailedGroup& group) = 0;
  // A role came, or went and why. Generators that go have their tickets sampled elsewhere.
  virtual void on_peer(const std::string& /*name*/, bool /*up*/, const std::string& /*cause*/) {}
  // What else people should know: a scorer that is away, samples without a score, a generator that
  // is tried again. On the strand of who says it.
  virtual void on_note(const std::string& /*text*/) {}
  // From the tickets of `from_update` on groups are scored by these rewards.
  virtual void on_rewards(std::uint64_t /*set*/,
                          std::uint64_t /*from_update*/,
                          const std::vector<RewardMember>& /*members*/) {}
  // The run waits for these, which were attached to it when it was saved.
  virtual void on_awaited_rewards(const std::set<std::string>& /*names*/) {}
  // While the run waits for groups, at each change; on the strand of data/0.
  virtual void on_groups(const GroupCounts& /*counts*/) {}
  virtual core::Result<void> on_update(const UpdateReport& report) = 0;
  virtual core::Result<void> on_evaluation(const EvaluationReport& report) = 0;
  // The folder that the roles write the checkpoint of `done` updates into, then its commit, which
  // gives the place where it stands. A commit hashes all that was written: it is awaited, so that
  // the strand goes on.
  virtual core::Result<std::filesystem::path> begin_checkpoint(std::uint64_t done) = 0;
  virtual async::task<core::Result<std::filesystem::path>> commit_checkpoint(
      std::uint64_t done) = 0;
  // True when the evaluation after `done` updates was the best so far: a checkpoint is made then,
  // with the model beside it.
  virtual bool is_best(std::uint64_t /*done*/) const { return false; }
  // Error: the place where all of this goes is gone; a checkpoint that is begun then has another.
  virtual core::Result<void> check_place() const { return {}; }
  // True once the user asked to stop.
  virtual bool stop_requested() const = 0;
};

}  // namespace troupe::actors
