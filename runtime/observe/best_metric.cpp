#include "runtime/observe/best_metric.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

namespace troupe::observe {

BestMetric::BestMetric(std::string_view key) {
  if (key.starts_with('-')) {
    sign_ = -1;
    key.remove_prefix(1);
  }
  name_ = key;
}

void BestMetric::read(const std::filesystem::path& metrics_file) {
  if (name_.empty()) return;
  std::ifstream in(metrics_file);
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains(name_) || !row.contains("step")) continue;
    if (!row[name_].is_number() || !row["step"].is_number_unsigned()) continue;
    offer(row["step"].get<std::uint64_t>(), row[name_].get<double>());
  }
}

bool BestMetric::offer(const MetricRow& row) {
  if (name_.empty()) return false;
  const auto value = row.find(name_);
  return value && offer(row.step, *value);
}

bool BestMetric::offer(std::uint64_t step, double value) {
  if (!std::isfinite(value)) return false;
  if (best_ && sign_ * value <= sign_ * best_->value) return false;
  best_ = Best{step, value};
  return true;
}

}  // namespace troupe::observe
