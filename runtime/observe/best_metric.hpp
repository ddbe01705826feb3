// Tracks which step of a run was best by one evaluation metric (ckpt.best_metric_key). `read`
// rebuilds its state from metrics.jsonl, so a resumed run, whose metrics were cut back to its
// checkpoint, knows its best step. Not thread-safe; RunReporter uses it under its lock.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/observe/metric_row.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace troupe::observe {

// By the end of its name: a loss, a perplexity, an error, what was cut or is missing.
bool is_better_lower(std::string_view metric);

class BestMetric {
 public:
  struct Best {
    std::uint64_t step = 0;
    double value = 0;
  };

  // `key`: a metric such as "eval/pass@1"; "-" in front of it says that lower is better, "+" that
  // higher is. Without either it is the highest, but of what is_better_lower the lowest. Empty: no
  // step is ever best.
  explicit BestMetric(std::string_view key);

  // Offers every row of `metrics_file`. Lines that are not metric rows are skipped.
  void read(const std::filesystem::path& metrics_file);

  // True when the row has the metric, and its value is finite and better than all values before.
  // Among equal values, the first stays the best.
  bool offer(const MetricRow& row);

  // After an evaluation, whose rows were offered: error kConfig when none had the metric, with
  // those that there are.
  core::Result<void> check() const;

  const std::optional<Best>& best() const { return best_; }
  const std::string& name() const { return name_; }

 private:
  bool offer(std::uint64_t step, double value);

  std::string name_;
  double sign_ = 1;
  std::set<std::string> seen_;  // figures of evaluations
  std::optional<Best> best_;
};

}  // namespace troupe::observe
