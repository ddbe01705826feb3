// Starts and kills the node processes of a run on its own host: this program as `troupe node
// --local`. Each leads its own process group, so that Ctrl-C reaches the run's head alone, dies
// with the head, and writes to its own log file. Owned by the control plane; used on the company's
// strand.
#pragma once

#include "actors/company/local_processes.hpp"
#include "runtime/core/child_process.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::app {

class LocalNodes final : public actors::NodeLauncher {
 public:
  // `socket`: the company's. Logs go to `log_folder`/NAME.log; the folder is created if missing.
  LocalNodes(std::string socket, std::filesystem::path log_folder);

  core::Result<void> start(const std::string& node,
                           const std::vector<std::string>& kinds,
                           const std::string& pass) override;
  void kill(const std::string& node) override;
  std::vector<Exit> exits() override;

 private:
  std::string socket_;
  std::filesystem::path log_folder_;
  std::map<std::string, core::ChildProcess> nodes_;  // killed by the destructor
};

}  // namespace troupe::app
