// The node processes that a company keeps up on its own host: started, started again with back-off,
// killed when they do not join in time. Told the time, never asks for it; starts by a launcher,
// which outlives it. Owned by the company, used on its strand.
#pragma once

#include "actors/company/admission.hpp"
#include "runtime/core/clock.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

// Starts and kills node processes. Used on the company's strand; calls return at once. The
// processes die with the one that started them.
class NodeLauncher {
 public:
  virtual ~NodeLauncher() = default;
  virtual core::Result<void> start(const std::string& node,
                                   const std::vector<std::string>& kinds,
                                   const std::string& pass) = 0;
  // SIGKILL. Its end shows in `exits`.
  virtual void kill(const std::string& node) = 0;

  struct Exit {
    std::string node;
    std::string cause;  // "was ended by signal 9 (Killed)"
  };
  // Processes that ended since the last call.
  virtual std::vector<Exit> exits() = 0;
};

struct LocalNode {
  std::string name;  // "node/policy"
  std::vector<std::string> kinds;
};

class LocalProcesses {
 public:
  LocalProcesses(std::vector<LocalNode> nodes, NodeLauncher& launcher, Admission& admission);

  struct Ended {
    std::string node;
    std::string how;     // "was ended by signal 9 (Killed)"
    bool joined;         // it had joined
    bool over_and_over;  // more than kRestarts_max processes in a row did not join
  };
  // Processes that ended since the last call.
  std::vector<Ended> collect(core::TimePoint now);
  // Kills those that did not join in time; gives their names. Their ends show in `collect`.
  std::vector<std::string> kill_late(core::TimePoint now);
  // Starts those that are due. Error: that of the launcher.
  core::Result<void> start_due(core::TimePoint now);

  bool has(const std::string& node) const;
  void joined(const std::string& node);
  // Nothing for a node of another host.
  void kill(const std::string& node);
  void kill_unjoined();
  bool any_running() const;

 private:
  struct Process {
    LocalNode node;
    bool running = false;
    core::TimePoint start_at{};  // of the next process, or of the one that runs
    bool joined = false;
    std::uint64_t failures = 0;  // in a row, without having joined
  };
  Process* find(const std::string& node);

  NodeLauncher& launcher_;
  Admission& admission_;
  std::vector<Process> processes_;
};

}  // namespace troupe::actors
