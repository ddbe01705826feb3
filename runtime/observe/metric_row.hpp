// What is recorded about one update: named values in the order in which they are shown. A value
// type.
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

}  // namespace troupe::observe
