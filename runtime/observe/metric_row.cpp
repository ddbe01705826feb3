#include "runtime/observe/metric_row.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::observe {
namespace {

nlohmann::ordered_json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

}  // namespace

std::string metric_json(const MetricRow& row) {
  nlohmann::ordered_json object;
  object["step"] = row.step;
  object["time"] = number(row.wall_time_s);
  for (const auto& [name, value] : row.values)
    object[name] = number(value);
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace troupe::observe
