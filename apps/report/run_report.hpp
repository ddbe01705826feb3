// All that a report shows of one run folder, as the JSON that its page reads. The folder may be
// that of a run in progress, of a finished one, empty or damaged: whatever cannot be read is named
// in `notes`.
#pragma once

#include "apps/report/metric_curves.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::report {

struct ReportOptions {
  std::vector<std::filesystem::path> runs;
  std::uint64_t samples_max = 1000;  // rollouts shown of each run
};

// How runs are called in legends: the names of their folders, with as many parents as tell them
// apart.
std::vector<std::string> run_names(const std::vector<std::filesystem::path>& runs);

// {program, runs}.
nlohmann::ordered_json report_json(const ReportOptions& options);

}  // namespace troupe::report
