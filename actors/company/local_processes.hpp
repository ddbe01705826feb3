// Keeps the node processes of the company's own host running: starts them, restarts them with
// back-off, and kills those that do not join in time. The caller passes the time in; a NodeLauncher
// starts the processes and outlives this object. Owned by the company, used on its strand.
#pragma once

#include "actors/company/admission.hpp"
#include "runtime/core/clock.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors::company {

// Starts and kills node processes. Used on the company's strand; calls return at once.
class NodeLauncher {
 public:
  virtual ~NodeLauncher() = default;
  virtual core::Result<void> start(const std::string& node,
                                   const std::vector<std::string>& kinds,
                                   const std::string& pass) = 0;
  // Has a process of this node that an earlier head left join with this pass. False when there is
  // none that can.
  virtual bool adopt(const std::string&, const std::vector<std::string>&, const std::string&) {
    return false;
  }
  // Sends SIGKILL; `exits` reports the end.
  virtual void kill(const std::string& node) = 0;

  struct Exit {
    std::string node;
    std::string cause;                                  // "was ended by signal 9 (Killed)"
    core::ErrorCode code = core::ErrorCode::kPeerLost;  // kResources: the system had no room for it
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
    std::string how;  // "was ended by signal 9 (Killed)"
    core::ErrorCode code;
    bool joined;         // it had joined
    bool over_and_over;  // its processes ended more than kRestarts_max times since one last joined
  };
  // Processes that ended since the last call.
  std::vector<Ended> collect(core::TimePoint now);
  // Kills those that did not join in time and returns their names; `collect` reports their ends.
  std::vector<std::string> kill_late(core::TimePoint now);
  // Starts those that are due. Error: the launcher's; that process is due again a little later.
  core::Result<void> start_due(core::TimePoint now);

  // True for a node of this host, until it was retired and its process has ended.
  bool has(const std::string& node) const;
  // No process of the node is started any more; one that has not joined is killed.
  void retire(const std::string& node);
  void joined(const std::string& node);
  // Does nothing for a node of another host.
  void kill(const std::string& node);
  void kill_unjoined();
  bool any_running() const;

 private:
  struct Process {
    LocalNode node;
    bool running = false;
    core::TimePoint start_at{};  // when the next process is due, or when the running one started
    bool joined = false;
    bool sought = false;         // a process of an earlier head was looked for
    bool adopted = false;        // the running process is from an earlier head
    bool retired = false;        // it is not started any more
    std::uint64_t failures = 0;  // ends since a process of the node last joined
  };
  Process* find(const std::string& node);

  NodeLauncher& launcher_;
  Admission& admission_;
  std::vector<Process> processes_;
};

}  // namespace troupe::actors::company
