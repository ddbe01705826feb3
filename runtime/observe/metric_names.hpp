// Names of the figures as other trainers write them (--log.names), so that their dashboards show
// our runs. Only for metrics with an equal or close counterpart there; others keep their name.
// Constants.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe::observe {

struct MetricNames {
  std::string_view ours, openrlhf, trl, verl;  // empty: none
};

// The table of docs/metrics.md.
std::span<const MetricNames> metric_names();

// `name` under the names of `style` (ours, openrlhf, trl, verl).
std::string metric_name(std::string_view name, std::string_view style);

}  // namespace troupe::observe
