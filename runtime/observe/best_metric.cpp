#include "runtime/observe/best_metric.hpp"

#include "runtime/core/texts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace troupe::observe {

bool is_better_lower(std::string_view metric) {
  constexpr std::string_view kLower[] = {"loss",       "perplexity", "nll",
                                         "error",      "kl",         "truncated_rate",
                                         "clip_ratio", "missing",    "divergence"};
  return std::ranges::any_of(kLower, [&](std::string_view end) { return metric.ends_with(end); });
}

BestMetric::BestMetric(std::string_view key) {
  const bool lower = key.starts_with('-'), higher = key.starts_with('+');
  if (lower || higher) key.remove_prefix(1);
  sign_ = lower || (!higher && is_better_lower(key)) ? -1 : 1;
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
  for (const auto& [name, figure] : row.values)
    if (name.starts_with("eval/")) seen_.insert(name);
  const auto value = row.find(name_);
  return value && offer(row.step, *value);
}

core::Result<void> BestMetric::check() const {
  // What is missing is no figure when nothing is.
  const bool counts = name_.ends_with("missing");
  if (name_.empty() || counts || seen_.empty() || seen_.contains(name_)) return {};
  return core::fail(core::ErrorCode::kConfig,
                    "ckpt.best_metric_key: the evaluation has no figure " + name_,
                    "it has " + core::joined(seen_));
}

bool BestMetric::offer(std::uint64_t step, double value) {
  if (!std::isfinite(value)) return false;
  if (best_ && sign_ * value <= sign_ * best_->value) return false;
  best_ = Best{step, value};
  return true;
}

}  // namespace troupe::observe
