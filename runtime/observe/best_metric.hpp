// Tracks which step of a run was best by one evaluation metric (ckpt.best_metric_key). Its state is
// rebuilt from metrics.jsonl, so it is right for a resumed run, whose metrics were cut back.
// Owned by the run's recorder; one thread.
#pragma once

#include "runtime/observe/metric_row.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::observe {

class BestMetric {
 public:
  struct Best {
    std::uint64_t step = 0;
    double value = 0;
  };

  // `key` as in "eval/pass@1"; with - in front lower is better. Empty: no step is ever best.
  explicit BestMetric(std::string_view key);

  // Reads what a run has recorded so far. Lines that are no rows are passed over.
  void read(const std::filesystem::path& metrics_file);

  // True when the row has the figure and it is finite and better than all before; the first of
  // equals stays the best.
  bool offer(const MetricRow& row);

  const std::optional<Best>& best() const { return best_; }
  const std::string& name() const { return name_; }

 private:
  bool offer(std::uint64_t step, double value);

  std::string name_;
  double sign_ = 1;
  std::optional<Best> best_;
};

}  // namespace troupe::observe
