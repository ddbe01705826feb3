// The groups in which a report shows metrics: the sections of docs/metrics.md, and those of the
// supervised methods (docs/supervised.md). Pure.
#pragma once

#include <array>
#include <string_view>

namespace troupe::report {

inline constexpr std::array<std::string_view, 5> kMetricGroups = {
    "Of the controller", "Of the trainer", "Of evaluations", "Of supervised methods", "Other"};

// The place of a metric's group in kMetricGroups.
std::size_t group_of_metric(std::string_view name);

}  // namespace troupe::report
