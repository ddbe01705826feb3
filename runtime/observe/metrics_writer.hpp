// metrics.jsonl: one JSON object an update, {"step": 3, "time": 1.7e9, "reward/mean": 0.5, ...}. It
// is the truth; TensorBoard and the terminal show what it holds. Numbers are written so that they
// read back to the same bits; NaN and infinity, which JSON lacks, as the strings "nan", "inf",
// "-inf". Owned by the run's recorder; one thread. Each row is one append to the file.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/observe/metric_row.hpp"
#include "runtime/store/append_file.hpp"

#include <filesystem>
#include <string>

namespace troupe::observe {

// The row as one line of JSON, without a newline.
std::string metric_json(const MetricRow& row);

class MetricsWriter {
 public:
  static core::Result<MetricsWriter> open(const std::filesystem::path& file);

  core::Result<void> write(const MetricRow& row);
  // Puts all rows on disk; before a checkpoint is committed.
  core::Result<void> sync() { return file_.sync(); }

 private:
  explicit MetricsWriter(store::AppendFile file) : file_(std::move(file)) {}
  store::AppendFile file_;
};

}  // namespace troupe::observe
