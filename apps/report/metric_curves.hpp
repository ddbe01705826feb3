// The metrics of a run as curves, read from metrics.jsonl in a stream. Memory is bounded by the
// number of metrics, not by the length of the run. A value type.
#pragma once

#include "apps/report/curve.hpp"
#include "apps/report/notes.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::report {

struct MetricCurves {
  std::vector<std::pair<std::string, Curve>> curves;  // in the order of their first row
  Curve clock;                                        // seconds since the first row, by step
  std::uint64_t rows = 0;
  double first_time_s = 0, last_time_s = 0;  // since 1970; 0: no row has one
  std::uint64_t last_step = 0;

  const Curve* find(std::string_view name) const;
};

MetricCurves read_metrics(const std::filesystem::path& file, Notes& notes);

// By name: group, steps, values (null: the line is broken), means of what was thinned, and how many
// values were not finite.
nlohmann::ordered_json curves_json(const MetricCurves& metrics);

// Steps and the seconds at which they were recorded, as x and y.
nlohmann::ordered_json clock_json(const MetricCurves& metrics);

// To six significant digits, as they are drawn; the page is half as large.
double rounded(double value);

}  // namespace troupe::report
