// Starts and kills the node processes of a run on its own host: this program as `troupe node
// --local`. Each leads its own process group, so that Ctrl-C reaches the run's head alone, and
// writes to its own log file. A node outlives a head that dies, and the next head adopts it. Owned
// by the control plane; used on the company's strand. One object a process.
#pragma once

#include "actors/company/local_processes.hpp"
#include "apps/session/node/memory_kills.hpp"
#include "apps/session/node/pass_file.hpp"
#include "runtime/core/child_process.hpp"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::session {

class LocalNodes final : public actors::company::NodeLauncher {
 public:
  // `socket`: the company's. Logs go to `folder`/NAME.log; the folder is created if missing.
  // `outlive`: the nodes live on when this process dies.
  LocalNodes(std::string socket, const std::filesystem::path& folder, bool outlive);
  ~LocalNodes() override;  // kills the nodes, and waits for those that keep their output

  // Kills what an earlier head left and this one does not want.
  void end_others(const std::vector<actors::company::LocalNode>& wanted);

  core::Result<void> start(const std::string& node,
                           const std::vector<std::string>& kinds,
                           const std::string& pass) override;
  bool adopt(const std::string& node,
             const std::vector<std::string>& kinds,
             const std::string& pass) override;
  void kill(const std::string& node) override;
  std::vector<Exit> exits() override;

 private:
  using Process = std::variant<core::ChildProcess, OtherProcess>;
  struct Node {
    Process process;
    MemoryKills kills;
    bool killed = false;  // by this object
  };
  static Exit exit_of(const std::string& name, Node& node);
  std::filesystem::path file(const std::string& node, const char* ending) const;
  void await_keepers();
  void put(const std::string& node, Process process);

  const std::string socket_;
  const std::filesystem::path folder_;
  const bool outlive_;
  std::map<std::string, Node> nodes_;
  std::set<std::filesystem::path> logs_;         // of the processes that were started
  std::size_t started_ = 0, keepers_ended_ = 0;  // each of these has a keeper
};

}  // namespace troupe::session
