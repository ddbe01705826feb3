// What a run writes for its user: troupe.log, metrics.jsonl and TensorBoard's event file; and the
// look after every update at all files that the run keeps (store/kept_files.hpp). RunReporter uses
// it under its lock.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/observe/log.hpp"
#include "runtime/observe/metric_row.hpp"
#include "runtime/observe/tensorboard_writer.hpp"
#include "runtime/store/kept_lines.hpp"
#include "runtime/store/run_folder.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe::session {

class RunOutput {
 public:
  using Say = std::function<void(const std::string&)>;

  // `folder` outlives this object. `resumed_at`: updates in the checkpoint that the run goes on
  // from.
  static core::Result<RunOutput> open(const config::TrainConfig& config,
                                      const store::RunFolder& folder,
                                      std::optional<std::uint64_t> resumed_at);

  void log(const std::string& text) { log_.info(text); }
  // Writes a row to metrics.jsonl and TensorBoard. `say` is told what TensorBoard lacks.
  core::Result<void> write(const observe::MetricRow& row, const Say& say);

  // Finds what was removed, cut or replaced, makes it again where that can be done, and
  // says so. Does nothing once the folder itself is gone.
  core::Result<void> look_after_files(const Say& say);
  // True when something was lost that the run needs until its next checkpoint.
  bool needs_checkpoint() const noexcept { return lost_; }
  // A checkpoint is written, and may replace the newest; then it is there.
  void checkpoint_begins();
  void checkpoint_is(const std::filesystem::path& folder);

 private:
  RunOutput(const config::TrainConfig& config,
            const store::RunFolder& folder,
            observe::Log log,
            store::KeptLines metrics)
      : config_(config), folder_(&folder), log_(std::move(log)), metrics_(std::move(metrics)) {}
  core::Result<void> begin_events(std::optional<std::uint64_t> resumed_at);
  core::Result<void> begin_anew(const std::filesystem::path& lost);

  config::TrainConfig config_;
  const store::RunFolder* folder_;
  observe::Log log_;
  store::KeptLines metrics_;
  std::optional<observe::TensorboardWriter> tensorboard_;
  std::filesystem::path newest_;  // checkpoint
  bool lost_ = false;
};

}  // namespace troupe::session
