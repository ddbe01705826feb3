// The metrics of one update or one evaluation: named values in the order in which they are written,
// and their line in metrics.jsonl. A value type.
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
// ...}. Numbers read back to the same bits; NaN and infinity, which JSON lacks, become the strings
// "nan", "inf" and "-inf". metrics.jsonl has one such line for each update and each evaluation. It
// is the authoritative record; TensorBoard and the terminal show parts of it.
std::string metric_json(const MetricRow& row);

}  // namespace troupe::observe
