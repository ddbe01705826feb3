// The metrics of one update: named values in display order, and their line in metrics.jsonl. A
// value type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::observe {

struct MetricRow {
  std::uint64_t step = 0;  // updates done; 0 is the model before training
  double wall_time_s = 0;  // seconds since 1970
  std::vector<std::pair<std::string, double>> values;

  std::optional<double> find(std::string_view name) const {
    for (const auto& [key, value] : values) {
      if (key == name) return value;
    }
    return std::nullopt;
  }
};

// The row as one line of JSON, without a newline: {"step": 3, "time": 1.7e9, "reward/mean": 0.5,
// ...}. Numbers are written so that they read back to the same bits; NaN and infinity, which JSON
// lacks, as the strings "nan", "inf", "-inf". metrics.jsonl holds one such line an update. It is
// the truth; TensorBoard and the terminal show what it holds.
std::string metric_json(const MetricRow& row);

}  // namespace troupe::observe
