// What a run over several processes did, read back from its folder: how much ran at once, how old
// the tokens were, how many sequences crossed a version. Pure reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::app {

struct RoleShare {
  std::string name;
  double busy = 0;  // of its wall time
  std::string idle_cause;
  double idle = 0;  // for the cause it was idle most for
};

struct RunReport {
  double wall_s = 0, busy_together_s = 0;
  std::vector<std::uint64_t> staleness;  // trained tokens by age in updates
  std::uint64_t crossed = 0;             // sequences with tokens of more than one version
  std::vector<RoleShare> roles;
};

// Of a metric that counts, over all updates of RUN/metrics.jsonl.
std::uint64_t sum_of_metric(const std::filesystem::path& run_folder, const std::string& name);

// RUN/status.json and metrics.jsonl; nothing when the run left none.
std::optional<RunReport> read_report(const std::filesystem::path& run_folder);

}  // namespace troupe::app
