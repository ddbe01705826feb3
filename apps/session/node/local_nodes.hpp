// The node processes of a run on its own host: this program again, as `troupe node --local`. Each
// leads a process group of its own, so that Ctrl-C reaches the run alone, dies with the run, and
// writes its output to a log file of its own. Owned by the command that trains; used on the
// company's strand.
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
  // `socket`: of the company. Logs go to `log_folder`/NAME.log, which is made where needed.
  LocalNodes(std::string socket, std::filesystem::path log_folder);

  core::Result<void> start(const std::string& node,
                           const std::vector<std::string>& kinds,
                           const std::string& pass) override;
  void kill(const std::string& node) override;
  std::vector<Exit> exits() override;

 private:
  std::string socket_;
  std::filesystem::path log_folder_;
  std::map<std::string, core::ChildProcess> nodes_;  // killed with this
};

}  // namespace troupe::app
