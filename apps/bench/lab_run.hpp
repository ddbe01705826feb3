// Starts a real `troupe train ppo` of a tiny random model in processes of its own, watches it
// through its files and `troupe status`, and stops it. Owned by a benchmark, on its thread; the
// destructor kills the run. Every wait has a limit; past it the error shows the run's last output.
#pragma once

#include "apps/bench/logged_process.hpp"
#include "apps/bench/temporary_folder.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>

namespace troupe::bench {

struct LabShape {
  std::int64_t layers = 2, hidden = 64, heads = 4, kv_heads = 2, ffn = 160, context = 256;
};

// The files of a run in one folder: the tiny model with a tokenizer of bytes, a dataset and a
// configuration.
class LabFiles {
 public:
  // `keep`: the folder to use, which stays; "" makes a temporary one. Errors: kResources.
  static core::Result<LabFiles> make(const LabShape& shape, const std::string& keep = "");

  // The path of a file in the folder: "model", "train.jsonl", or "run.yaml", the configuration of a
  // run that lives until it is interrupted.
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  std::string run() const { return *this / "run"; }  // the run folder

 private:
  LabFiles() = default;

  std::filesystem::path folder_;
  std::optional<TemporaryFolder> temporary_;
};

// Sizes of an update: `groups` prompts, `samples` responses to each, of at most `new_tokens`
// tokens. `staleness_max` is train.staleness_max, in updates.
struct LabSizes {
  std::int64_t groups = 4, samples = 4, new_tokens = 16;
  std::int64_t staleness_max = 1;
};

class LabRun {
 public:
  // `more`: further words of the command line. `limit_s`: seconds that each wait may take.
  static core::Result<LabRun> start(const LabFiles& files,
                                    const LabSizes& sizes,
                                    const std::vector<std::string>& more,
                                    double limit_s);

  std::uint64_t updates() const;  // done so far
  // Waits until `updates` are done.
  core::Result<void> reach(std::uint64_t updates);
  // What `troupe status --json` prints.
  core::Result<nlohmann::json> status() const;
  // Interrupts the run: it ends after the current update, with a checkpoint.
  core::Result<void> interrupt();

  // One column of metrics.jsonl, for the updates from `first` (1-based) on.
  std::vector<double> metric(const std::string& name, std::uint64_t first) const;
  pid_t pid() const { return process_.pid(); }
  std::string output() const { return process_.output(); }

 private:
  LabRun(const LabFiles& files, LoggedProcess process, double limit_s)
      : files_(&files), process_(std::move(process)), limit_s_(limit_s) {}
  core::Failure trouble(const std::string& what) const;

  const LabFiles* files_;
  LoggedProcess process_;
  double limit_s_;
};

// How a role spent its time between two answers of `status`.
struct RoleTimes {
  double wall_s = 0, busy_s = 0;
  std::map<std::string, double> idle_s;  // by cause
  double idle_share() const;
};
RoleTimes role_times(const nlohmann::json& before,
                     const nlohmann::json& after,
                     const std::string& role);

// The process id of the role's node; 0 when there is none.
pid_t pid_of_role(const nlohmann::json& status, const std::string& role);

}  // namespace troupe::bench
