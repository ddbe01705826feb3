// The names that other trainers give our metrics (--log.names), so that charts made for those
// trainers show our runs. A metric without an equal or close counterpart keeps its own name.
// Constants.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe::observe {

struct MetricNames {
  std::string_view ours, openrlhf, trl, verl;  // empty: none
};

// All rows; docs/metrics.md shows the same table.
std::span<const MetricNames> metric_names();

// What `style` (ours, openrlhf, trl or verl) calls our metric `name`; `name` itself if the table
// has no other name.
std::string metric_name(std::string_view name, std::string_view style);

}  // namespace troupe::observe
