// Writes a TensorBoard event file, events.out.tfevents.<seconds>.<host>.<pid>.<n>, in the run
// folder's tensorboard/. Each event is one append. Not thread-safe; RunReporter uses it under its
// lock.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/observe/metric_row.hpp"
#include "runtime/store/append_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace troupe::observe {

class TensorboardWriter {
 public:
  // Creates a new file. `resumed_at`: the step of the checkpoint that the run resumes from;
  // TensorBoard then ignores what older files hold after that step.
  static core::Result<TensorboardWriter> create(const std::filesystem::path& folder,
                                                double wall_time_s,
                                                std::optional<std::uint64_t> resumed_at);

  // TensorBoard ignores all that older files hold: the run has begun anew.
  core::Result<void> drop_earlier(double wall_time_s);

  // Writes metrics under the names of `style` (--log.names); the default "ours" renames nothing.
  void use_names(std::string style) { names_ = std::move(style); }

  core::Result<void> write(const MetricRow& row);
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  explicit TensorboardWriter(store::AppendFile file) : file_(std::move(file)) {}
  store::AppendFile file_;
  std::string names_ = "ours";
};

}  // namespace troupe::observe
