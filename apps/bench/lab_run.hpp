// A real `troupe train ppo` of the lab's tiny model in processes of its own: started, watched
// through its files and `troupe status`, and stopped. Owned by the benchmark, on its thread; ends
// with it. Every wait has a limit; past it the error says what the run printed last.
#pragma once

#include "apps/bench/lab_files.hpp"
#include "apps/bench/logged_process.hpp"

#include <nlohmann/json.hpp>

namespace troupe::app {

class LabRun {
 public:
  static core::Result<LabRun> start(const LabFiles& files, const std::vector<std::string>& more);

  std::uint64_t updates() const;  // done so far
  // Until so many are done.
  core::Result<void> reach(std::uint64_t updates, double limit_s);
  core::Result<nlohmann::json> status(double limit_s);
  // To its own end. Error: kPeerLost when it fails or takes longer.
  core::Result<void> finish(double limit_s);
  // Interrupts it: it ends after the update at hand, with a checkpoint.
  core::Result<void> interrupt(double limit_s);

  // One column of metrics.jsonl, for the updates from `first` (1-based) on.
  std::vector<double> metric(const std::string& name, std::uint64_t first) const;
  pid_t pid() const { return process_.pid(); }
  std::string output() const { return process_.output(); }

 private:
  LabRun(const LabFiles& files, LoggedProcess process)
      : files_(&files), process_(std::move(process)) {}
  core::Failure trouble(const std::string& what) const;

  const LabFiles* files_;
  LoggedProcess process_;
};

// Seconds of a role of `status --json`, and its idle seconds of all causes.
double role_seconds(const nlohmann::json& status, const std::string& role, const std::string& what);
double idle_seconds(const nlohmann::json& status, const std::string& role);
// The process of the node that plays the role; 0 when there is none.
pid_t pid_of_role(const nlohmann::json& status, const std::string& role);

}  // namespace troupe::app
