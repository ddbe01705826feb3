#include "apps/session/run_report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace troupe::app {

std::uint64_t sum_of_metric(const std::filesystem::path& run_folder, const std::string& name) {
  double sum = 0;
  std::ifstream metrics(run_folder / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_object()) sum += row.value(name, 0.0);
  }
  return static_cast<std::uint64_t>(sum);
}

std::optional<RunReport> read_report(const std::filesystem::path& run_folder) {
  std::ifstream in(run_folder / "status.json");
  const auto status = nlohmann::json::parse(in, nullptr, false);
  if (!status.is_object() || !status.contains("run")) return std::nullopt;
  RunReport report;
  report.wall_s = status.value("watched_s", 0.0);
  report.busy_together_s = status.value("busy_together_s", 0.0);
  for (const auto& tokens : status["run"].value("staleness_tokens", nlohmann::json::array())) {
    report.staleness.push_back(tokens.get<std::uint64_t>());
  }
  for (const auto& role : status["roles"]) {
    RoleShare share;
    const double wall = std::max(role.value("wall_s", 0.0), 1e-9);
    share.name = role.value("name", "");
    share.busy = role.value("busy_s", 0.0) / wall;
    for (const auto& [cause, seconds] : role["idle_s"].items()) {
      if (seconds.get<double>() / wall <= share.idle) continue;
      share.idle = seconds.get<double>() / wall;
      share.idle_cause = cause;
    }
    report.roles.push_back(std::move(share));
  }
  report.crossed = sum_of_metric(run_folder, "async/crossed");
  return report;
}

}  // namespace troupe::app
